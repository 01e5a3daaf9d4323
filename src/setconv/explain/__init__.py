"""Why the model says what it says: rows that are alike, features and words that count.

`nearest_rows` finds the training rows that lie closest in the learned space.
`feature_contributions` and `word_contributions` work by occlusion: a feature is replaced by its
usual value, or a word is left out, the model scores again, and the change of the score is the
contribution. No gradients are taken, so the model may be any that scores rows.
"""

from __future__ import annotations

from setconv.explain.features import FeatureContributions, feature_contributions
from setconv.explain.nearest import Nearest, nearest_rows
from setconv.explain.words import WordContributions, word_contributions

__all__ = [
    "FeatureContributions",
    "Nearest",
    "WordContributions",
    "feature_contributions",
    "nearest_rows",
    "word_contributions",
]
