"""The systems that the SetConv paper compares with or builds on, as scikit-learn estimators."""

from __future__ import annotations

from setconv.needs import needed

with needed("setconv.baselines", "imbalanced-learn", "baselines"):
    import imblearn  # noqa: F401

from setconv.baselines.fallbacks import FallbackWarning
from setconv.baselines.resampled import ResampledClassifier

__all__ = ["FallbackWarning", "ResampledClassifier"]
