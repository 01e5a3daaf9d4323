"""Texts: encoders in the form of scikit-learn transformers, and a classifier of texts.

`SetConvTextClassifier` is an encoder and a `setconv.SetConvClassifier` in one estimator.
`TextEncoder` gives the embeddings of a Hugging Face encoder and keeps them in an `EmbeddingCache`,
so that no text is encoded twice::

    pipeline = make_pipeline(TextEncoder(), SetConvClassifier())
    pipeline.fit(texts, labels)

`TfidfEncoder` needs no model and no download. transformers (``pip install 'setconv[text]'``) is
imported when a text is first encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from setconv.text.cache import CacheInfo, EmbeddingCache, SpaceInfo
from setconv.text.encoder import TextEncoder
from setconv.text.tfidf import TfidfEncoder

if TYPE_CHECKING:
    from setconv.text.classifier import SetConvTextClassifier


def __getattr__(name: str) -> Any:
    # The classifier brings torch, which the cache and the encoders' parameters do not need.
    if name == "SetConvTextClassifier":
        from setconv.text.classifier import SetConvTextClassifier

        return SetConvTextClassifier
    raise AttributeError(f"module 'setconv.text' has no attribute {name!r}")


__all__ = [
    "CacheInfo",
    "EmbeddingCache",
    "SetConvTextClassifier",
    "SpaceInfo",
    "TextEncoder",
    "TfidfEncoder",
]
