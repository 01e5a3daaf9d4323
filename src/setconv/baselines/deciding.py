"""What several classifiers here do alike: decide by probability, and take two classes only."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags, Tags


class ArgmaxMixin:
    """Decides for the class with the largest probability."""

    classes_: np.ndarray

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        chosen = self.predict_proba(X).argmax(axis=1)  # type: ignore[attr-defined]
        return np.asarray(self.classes_[chosen])


class BinaryOnlyMixin:
    """Says by its tags that it takes two classes."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
