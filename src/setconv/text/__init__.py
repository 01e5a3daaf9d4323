"""Texts: encoders in the form of scikit-learn transformers, and a classifier of texts.

`SetConvTextClassifier` is an encoder and a `setconv.SetConvClassifier` in one estimator.
`TextEncoder` gives the embeddings of a Hugging Face encoder and keeps them in an `EmbeddingCache`,
so that no text is encoded twice::

    pipeline = make_pipeline(TextEncoder(), SetConvClassifier())
    pipeline.fit(texts, labels)

`TfidfEncoder` needs no model and no download. transformers (``pip install 'setconv[text]'``) is
imported when a text is first encoded, and everything else at the first use of its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setconv.pipelines import SetConvTextClassifier
    from setconv.text.cache import CacheInfo, EmbeddingCache, SpaceInfo
    from setconv.text.encoder import TextEncoder
    from setconv.text.tfidf import TfidfEncoder

_HOMES = {
    **dict.fromkeys(("CacheInfo", "EmbeddingCache", "SpaceInfo"), "setconv.text.cache"),
    "SetConvTextClassifier": "setconv.pipelines",
    "TextEncoder": "setconv.text.encoder",
    "TfidfEncoder": "setconv.text.tfidf",
}

__all__ = [
    "CacheInfo",
    "EmbeddingCache",
    "SetConvTextClassifier",
    "SpaceInfo",
    "TextEncoder",
    "TfidfEncoder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'setconv.text' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
