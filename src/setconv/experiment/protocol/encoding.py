"""Texts as features: once for all rows, or learned from the training rows of each split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import ParameterError
from setconv.experiment.protocol.fields import known_name

__all__ = ["encode_texts", "with_encoder"]

# "transformer" learns nothing from the rows, so it may see all of them before they are split.
_KINDS = ("transformer", "paper", "tfidf", "terms")


def encode_texts(texts: list[str], encoder: Mapping[str, Any]) -> NDArray[np.float32] | None:
    """Return the embeddings of texts; None if the encoder must be fitted to training rows.

    Parameters
    ----------
    texts : list of str
    encoder : mapping
        ``kind``: "transformer" (the default; other entries are parameters of
        `setconv.text.TextEncoder`), "paper" (BERT-large-cased-whole-word-masking, [CLS]), "tfidf"
        (`setconv.text.TfidfEncoder`) or "terms" (TF-IDF of single words, not condensed).
    """
    kind, parameters = _parts(encoder)
    if kind in ("tfidf", "terms"):
        return None
    from setconv.text import TextEncoder

    make = TextEncoder.paper if kind == "paper" else TextEncoder
    try:
        made = make(**parameters)
    except TypeError as error:
        raise ParameterError(f"encoder: {error}.") from None
    return np.asarray(made.fit(texts).transform(texts), dtype=np.float32)


def with_encoder(estimator: Any, encoder: Mapping[str, Any]) -> Any:
    """Return a pipeline that makes features of texts by what the training texts teach."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from setconv.text import TfidfEncoder

    kind, parameters = _parts(encoder)
    if kind == "tfidf":
        return make_pipeline(TfidfEncoder(**parameters), estimator)
    return make_pipeline(TfidfVectorizer(**parameters), FunctionTransformer(_dense), estimator)


def _dense(rows: Any) -> NDArray[np.float32]:
    return np.asarray(rows.toarray(), dtype=np.float32)


def _parts(encoder: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    parameters = dict(encoder)
    return known_name("encoder", parameters.pop("kind", _KINDS[0]), _KINDS), parameters
