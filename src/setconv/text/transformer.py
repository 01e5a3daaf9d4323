"""An encoder in memory: texts to tokens, tokens to hidden states, and those to one vector a text.

`load_network` brings a folder into memory as a `Network`; `plan_batches` says which texts go
through it together, and `pool` makes one vector of the states of a text's tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from setconv.errors import ModelFileError, ParameterError
from setconv.text.models import require_transformers

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Pooling = Literal["cls", "mean", "max"]
POOLINGS: tuple[Pooling, ...] = ("cls", "mean", "max")
DTYPES = ("auto", "float32", "bfloat16")
# A batch holds so many tokens for each text of ``batch_size``: long texts fill it with few rows,
# short ones with many, and all batches take about the same time and memory.
TOKENS_PER_TEXT = 32

_loading = threading.Lock()


def choose_device(device: str) -> str:
    """Return the device; "auto" is CUDA where there is one, else the CPU."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(f"device={device!r} cannot be used here: {error}") from error
    return str(device)


def choose_dtype(dtype: str, device: str) -> str:
    """Return the type of the network's numbers; "auto" is bfloat16 on CUDA, where it pays."""
    if dtype != "auto":
        return dtype
    import torch

    fast = device.startswith("cuda") and torch.cuda.is_bf16_supported()
    return "bfloat16" if fast else "float32"


@dataclass(frozen=True, eq=False)
class Network:
    """A tokenizer and a network on a device.

    Attributes
    ----------
    tokenizer : transformers tokenizer
    module : torch.nn.Module
    device : torch.device
    longest : int
        The most tokens that the network can read.
    """

    tokenizer: Any
    module: Any
    device: torch.device
    longest: int
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def tokenise(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Return the token numbers of each text, special tokens included."""
        with self._turn:  # a tokenizer may not be used by two threads at once
            found = self.tokenizer(
                list(texts),
                truncation=True,
                max_length=min(max_length, self.longest),
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )
        nothing = [self.tokenizer.unk_token_id or 0]  # a text of which the tokenizer keeps nothing
        return [tokens or nothing for tokens in found["input_ids"]]

    def hidden_states(self, tokens: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states, and the mask that is 1 where a token is."""
        import torch

        shape = (len(tokens), max(map(len, tokens)))
        numbers = np.full(shape, self.tokenizer.pad_token_id or 0, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        for row, given in enumerate(tokens):
            numbers[row, : len(given)] = given
            mask[row, : len(given)] = 1
        present = torch.from_numpy(mask).to(self.device)
        with torch.inference_mode():
            found = self.module(
                input_ids=torch.from_numpy(numbers).to(self.device), attention_mask=present
            )
        return found.last_hidden_state, present


def load_network(folder: Path, identity: str, device: str, dtype: str) -> Network:
    """Return the encoder in a folder; the last ones used stay in memory."""
    require_transformers()
    with _loading:
        return _load(folder, identity, device, dtype)


@lru_cache(maxsize=2)
def _load(folder: Path, identity: str, device: str, dtype: str) -> Network:  # noqa: ARG001
    import torch
    from transformers import AutoModel, AutoTokenizer

    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, **safe)
            module, state = AutoModel.from_pretrained(
                folder, use_safetensors=True, output_loading_info=True, **safe
            )
    except Exception as error:  # whatever a damaged or foreign folder makes transformers raise
        raise ModelFileError(
            f"{folder} cannot be loaded as an encoder: {error} (Code that comes with a model is "
            "never run.)"
        ) from error
    _refuse_unsuitable(folder, module.config, state["missing_keys"])
    module.to(device=device, dtype=getattr(torch, dtype)).eval()
    # Tokenizers that know no limit say some astronomic number.
    limit = tokenizer.model_max_length
    longest = int(min(limit, getattr(module.config, "max_position_embeddings", limit)))
    return Network(tokenizer, module, torch.device(device), longest)


def _refuse_unsuitable(folder: Path, config: Any, missing: Sequence[str]) -> None:
    # transformers would fill missing weights with random numbers. No pooling here needs a pooler.
    lacking = sorted(name for name in missing if "pooler" not in name)
    if lacking:
        raise ModelFileError(
            f"The weights in {folder} lack {len(lacking)} tensors of the network that config.json "
            f"describes, among them {lacking[0]}: copy or download the model again."
        )
    if getattr(config, "is_encoder_decoder", False):
        raise ModelFileError(
            f"{folder} holds an encoder with a decoder ({config.model_type}): choose a model that "
            "is an encoder alone, such as BERT."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from reporting on what it loads."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # some of its functions have no types
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def plan_batches(lengths: Sequence[int], batch_size: int) -> list[NDArray[np.intp]]:
    """Deal texts of similar length into batches of similar size.

    Parameters
    ----------
    lengths : sequence of int
        The number of tokens of each text.
    batch_size : int
        Texts of 32 tokens in a batch.

    Returns
    -------
    list of array of int
        The texts of each batch by their numbers. The batches come in a shuffled order, so that the
        first ones are like the rest and the time that remains can be told from them.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        stop = start + max(1, batch_size * TOKENS_PER_TEXT // longest)
        batches.append(order[start:stop])
        start = stop
    shuffled = np.random.default_rng(0).permutation(len(batches))
    return [batches[number] for number in shuffled]


def pool(hidden: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Return one vector a text, float32.

    Parameters
    ----------
    hidden : Tensor of shape (n_texts, n_tokens, width)
    mask : Tensor of shape (n_texts, n_tokens)
        1 for tokens, 0 for padding.
    pooling : {"cls", "mean", "max"}
        The first token's state, or the mean or the maximum over all tokens, special ones included.
    """
    states = hidden.float()
    if pooling == "cls":
        return states[:, 0]
    present = mask.unsqueeze(-1)
    if pooling == "mean":
        return (states * present).sum(dim=1) / present.sum(dim=1)
    return states.masked_fill(present == 0, float("-inf")).amax(dim=1)
