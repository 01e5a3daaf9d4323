"""From tables with numbers, categories and gaps to decisions, in one estimator."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import clone

from setconv.classifier import SetConvClassifier
from setconv.encoded import EncodedClassifier
from setconv.records import FeatureEncoder


class SetConvTableClassifier(EncodedClassifier):
    """Classify the rows of a table: numeric columns, categories and missing values.

    Parameters
    ----------
    encoder : FeatureEncoder or None, default=None
        None for one with defaults.
    classifier : SetConvClassifier or None, default=None
        None for one with defaults.

    Attributes
    ----------
    encoder_ : FeatureEncoder
        Fitted; its ``notes_`` say what was imputed, encoded and left out.
    classifier_ : SetConvClassifier
        The classifier that was fitted on its rows. Its fitted attributes (``classes_``,
        ``threshold_``, ``oof_report_`` ...) are this estimator's too.
    """

    saved_encoders: ClassVar[dict[str, Any]] = {"FeatureEncoder": FeatureEncoder}
    takes = "rows of a table"

    def __init__(
        self,
        encoder: FeatureEncoder | None = None,
        classifier: SetConvClassifier | None = None,
    ) -> None:
        super().__init__(encoder, classifier)

    def _make_encoder(self) -> Any:
        return FeatureEncoder() if self.encoder is None else clone(self.encoder)
