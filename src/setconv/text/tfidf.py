"""`TfidfEncoder`: texts as rows of numbers by counting words, without any download."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from setconv.errors import ParameterError
from setconv.messages import is_integer
from setconv.validation import at_least, check_parameter, check_texts

_FEWEST, _TEXTS_PER_COLUMN = 16, 4  # columns that few texts may have, texts for one beyond them
# Punctuation and emoji are words of their own: they carry meaning, and no text is left empty.
_WORD = r"(?u)\b\w+\b|[^\w\s]"
# What is counted, by the parameter that says how long the runs are.
_COUNTED = {"words": {"token_pattern": _WORD}, "characters": {"analyzer": "char_wb"}}


class TfidfEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts as TF-IDF of words and of pieces of words, in as few columns as tell most.

    Words and pieces are weighed by how rare they are in the training texts; a truncated singular
    value decomposition (latent semantic analysis) makes dense columns of them.

    Parameters
    ----------
    n_components : int, default=256
        Columns; fewer if there are few training texts or terms: at most one for four texts, but
        16. The last columns of many are noise that new texts do not share.
    words : (int, int), default=(1, 2)
        Shortest and longest run of words that is counted.
    characters : (int, int) or None, default=(3, 5)
        Shortest and longest run of characters within a word that is counted; None counts none.
    max_terms : int, default=10000
        The most frequent terms that are kept of each kind.
    random_state : int or None, default=0
        Seed of the decomposition.

    Attributes
    ----------
    vectorizers_ : dict of str to TfidfVectorizer
        The terms of each kind and their weights.
    components_ : array of shape (n_columns, n_terms)

    Examples
    --------
    >>> texts = ["a fine day", "a fine dog", "what a mess"]
    >>> TfidfEncoder(n_components=2).fit_transform(texts).shape
    (3, 2)
    """

    files: ClassVar[dict[str, Path]] = {}  # a saved model has no files to copy

    def __init__(
        self,
        n_components: int = 256,
        *,
        words: tuple[int, int] = (1, 2),
        characters: tuple[int, int] | None = (3, 5),
        max_terms: int = 10_000,
        random_state: int | None = 0,
    ) -> None:
        self.n_components = n_components
        self.words = words
        self.characters = characters
        self.max_terms = max_terms
        self.random_state = random_state

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the terms, their weights and the columns.

        Parameters
        ----------
        texts : sequence of str
            A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(texts, y)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> NDArray[np.float32]:  # noqa: ARG002
        """Do `fit`, and return the rows of the training texts."""
        self._check_parameters()
        given = check_texts(texts)
        vectorizers = self._new_vectorizers()
        counts = [one.fit_transform(given) for one in vectorizers.values()]
        counted = sparse.hstack(counts, format="csr")
        enough = max(_FEWEST, counted.shape[0] // _TEXTS_PER_COLUMN)
        width = min(self.n_components, enough, *counted.shape)
        _, _, components = randomized_svd(counted, width, n_iter=5, random_state=self.random_state)
        self.vectorizers_ = vectorizers
        self.components_ = np.asarray(components, dtype=np.float32)
        return self._project(counted)

    def transform(self, texts: Any) -> NDArray[np.float32]:
        """Return the rows of texts; a text without any known term is a row of zeros.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        array of shape (n_texts, n_columns)
        """
        check_is_fitted(self, "components_")
        given = check_texts(texts)
        counted = [one.transform(given) for one in self.vectorizers_.values()]
        return self._project(sparse.hstack(counted, format="csr"))

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as data for JSON, and arrays."""
        check_is_fitted(self, "components_")
        fitted = self.vectorizers_.items()
        terms = {kind: one.get_feature_names_out().tolist() for kind, one in fitted}
        weights = {f"{kind}_weights": one.idf_ for kind, one in fitted}
        seed = self.random_state if isinstance(self.random_state, int) else None
        config = {"parameters": self.get_params() | {"random_state": seed}, "terms": terms}
        return config, {"components": self.components_, **weights}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a fitted encoder from what `describe` gave; parts that do not fit are refused."""
        parameters = config["parameters"]
        ranges = {name: tuple(parameters[name]) for name in _COUNTED if parameters[name]}
        encoder = cls(**{**parameters, **ranges})
        encoder.vectorizers_ = encoder._new_vectorizers()
        for kind, one in encoder.vectorizers_.items():
            one.set_params(vocabulary=list(map(str, config["terms"][kind])))
            one.idf_ = np.asarray(arrays[f"{kind}_weights"], dtype=np.float32)
        encoder.components_ = np.asarray(arrays["components"], dtype=np.float32)
        n_terms = sum(map(len, config["terms"].values()))
        if encoder.components_.ndim != 2 or encoder.components_.shape[1] != n_terms:
            raise ValueError(f"{n_terms} terms, but components of {encoder.components_.shape}")
        encoder._check_parameters()
        encoder.transform(["a text"])
        return encoder

    def _new_vectorizers(self) -> dict[str, TfidfVectorizer]:
        common = {"max_features": self.max_terms, "sublinear_tf": True, "dtype": np.float32}
        return {
            kind: TfidfVectorizer(ngram_range=getattr(self, kind), **settings, **common)
            for kind, settings in _COUNTED.items()
            if getattr(self, kind) is not None
        }

    def _project(self, counted: Any) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = np.asarray(counted @ self.components_.T, dtype=np.float32)
        return rows

    def _check_parameters(self) -> None:
        for name in ("n_components", "max_terms"):
            check_parameter(self, name, getattr(self, name), [at_least(1)])
        for name in _COUNTED:
            value = getattr(self, name)
            if not _is_range(value) and (value is not None or name == "words"):
                why = f"{name}={value!r}: give the shortest and the longest run, such as (1, 2)."
                raise ParameterError(why, parameter=name)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _is_range(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and all(map(is_integer, value))
    return pair and bool(1 <= value[0] <= value[1])
