"""Estimators with an encoder in front of the classifier, and opening any saved one.

`EncodedClassifier` is an encoder and a `setconv.SetConvClassifier` in one estimator, fitted,
predicted with and saved together; `SetConvTableClassifier` is the one for tables, and
`setconv.text.SetConvTextClassifier` the one for texts. `load` opens what ``save`` wrote.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from setconv.classifier import SetConvClassifier
from setconv.decisions.rule import Predictions
from setconv.errors import ModelFileError, NotFittedError
from setconv.model import under
from setconv.persistence import SavedModel, describe, read_model, restore, save
from setconv.sampling import Keys

if TYPE_CHECKING:
    from setconv.io.encoder import FeatureEncoder

Array = NDArray[Any]


def _from_classifier(name: str) -> property:
    return property(
        lambda self: getattr(self._fitted(), name),
        doc=f"``{name}`` of the classifier; see `setconv.SetConvClassifier`.",
    )


class EncodedClassifier(ClassifierMixin, BaseEstimator):
    """An encoder and a `setconv.SetConvClassifier` that is fitted on its rows.

    A subclass says which encoder it makes (`_make_encoder`) and which it can save
    (``saved_encoders``).

    Parameters
    ----------
    encoder : object
        What makes the rows.
    classifier : SetConvClassifier or None
        None for one with defaults.
    """

    # Encoders that can be saved without pickle, by the name that a model file has for them.
    saved_encoders: ClassVar[Mapping[str, Any]] = {}
    takes: ClassVar[str] = "rows"
    encoder_: Any
    classifier_: SetConvClassifier
    source_: Any  # names of the columns that a file had, if the command line fitted the model

    def __init__(self, encoder: Any = None, classifier: SetConvClassifier | None = None) -> None:
        self.encoder = encoder
        self.classifier = classifier

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        groups: ArrayLike | None = None,
        resume_from: str | Path | None = None,
    ) -> Self:
        """Encode the rows and fit the classifier; arguments as for `SetConvClassifier.fit`."""
        encoder = self._make_encoder()
        keys = self._keys(X)
        rows = _fit_transform(encoder, X, keys)
        validation = None if X_val is None else encoder.transform(X_val)
        classifier = SetConvClassifier() if self.classifier is None else clone(self.classifier)
        classifier._fit_keyed(
            rows,
            y,
            sample_weight,
            X_val=validation,
            y_val=y_val,
            groups=groups,
            resume_from=resume_from,
            keys=keys,
            keys_val=None if X_val is None else self._keys(X_val),
        )
        self.encoder_, self.classifier_ = encoder, classifier
        return self

    def _make_encoder(self) -> Any:
        """Return a new, unfitted encoder."""
        raise NotImplementedError

    def _keys(self, X: Any) -> Keys | None:  # noqa: ARG002
        """Return numbers that are equal for copies; None: for rows that are encoded alike."""
        return None

    def predict(self, X: Any) -> Array:
        """Return the labels; see `SetConvClassifier.predict`."""
        return self._fitted().predict(self.encode(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the calibrated probability of each class, shape (n_rows, n_classes)."""
        return self._fitted().predict_proba(self.encode(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the score minus the threshold: (n_rows,), or (n_rows, n_classes)."""
        return self._fitted().decision_function(self.encode(X))

    def predictions(self, X: Any) -> Predictions:
        """Return labels, probabilities, scores and decision values, from one pass over the rows."""
        return self._fitted().predictions(self.encode(X))

    def predict_out_of_fold(self) -> Predictions:
        """Return what the members that left a training row out say of it, and which rows."""
        return self._fitted().predict_out_of_fold()

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the learned embedding of each row, shape (n_rows, n_embedding)."""
        return self._fitted().transform(self.encode(X))

    def encode(self, X: Any) -> Array:
        """Return what the encoder makes of X: the rows that the classifier sees."""
        self._fitted()
        return np.asarray(self.encoder_.transform(X))

    def set_objective(self, objective: Any) -> Self:
        """Move the decision to another objective, without training."""
        self._fitted().set_objective(objective)
        return self

    def set_prior(self, prior: Any) -> Self:
        """Say how frequent the classes are where the model is used."""
        self._fitted().set_prior(prior)
        return self

    def save(self, folder: str | Path) -> None:
        """Save encoder and classifier as one folder: safetensors, JSON and a card; no pickle.

        The write is atomic. Load with `setconv.load`.
        """
        save(self._describe(), Path(folder))

    classes_ = _from_classifier("classes_")
    class_counts_ = _from_classifier("class_counts_")
    representatives_ = _from_classifier("representatives_")
    threshold_ = _from_classifier("threshold_")
    threshold_basis_ = _from_classifier("threshold_basis_")
    prior_ = _from_classifier("prior_")
    report_ = _from_classifier("report_")
    report_source_ = _from_classifier("report_source_")
    oof_report_ = _from_classifier("oof_report_")
    history_ = _from_classifier("history_")
    n_steps_ = _from_classifier("n_steps_")
    objective_ = _from_classifier("objective_")

    def _describe(self) -> SavedModel:
        saved = describe(self._fitted())
        kind, known = type(self.encoder_).__name__, self._saved_encoders()
        if known.get(kind) is not type(self.encoder_):
            raise ModelFileError(
                f"An encoder of type {kind} cannot be saved without pickle (these can: "
                f"{', '.join(known)}). The classifier of its rows can be: "
                "model.classifier_.save(folder)."
            )
        config, arrays = self.encoder_.describe()
        described = {
            **saved.config,
            "takes": self.takes,
            "encoder": {"kind": kind, **config},
            "source": getattr(self, "source_", None),
        }
        of_encoder = {f"encoder/{name}": np.array(one) for name, one in arrays.items()}
        return SavedModel(type(self).__name__, described, saved.arrays | of_encoder)

    @classmethod
    def _saved_encoders(cls) -> Mapping[str, Any]:
        return cls.saved_encoders

    @classmethod
    def restore(cls, saved: SavedModel, folder: Path, device: str) -> Self:
        """Return the estimator that was saved; `setconv.load` calls this."""
        classifier = SetConvClassifier()
        restore(classifier, saved, device)
        try:
            described = dict(saved.config["encoder"])
            kind = cls._saved_encoders()[described.pop("kind")]
            arrays = under("encoder/", saved.arrays)
            encoder = cls._restore_encoder(kind, described, arrays, folder)
        except (LookupError, TypeError, AttributeError) as error:
            raise ModelFileError(
                f"The model's encoder cannot be restored ({type(error).__name__}: {error}): copy "
                "the model folder again."
            ) from error
        estimator = cls(encoder=clone(encoder), classifier=clone(classifier))
        estimator.encoder_, estimator.classifier_ = encoder, classifier
        estimator.source_ = saved.config.get("source")
        return estimator

    @staticmethod
    def _restore_encoder(
        kind: Any,
        described: dict[str, Any],
        arrays: dict[str, Array],
        folder: Path,  # noqa: ARG004
    ) -> Any:
        return kind.restore(described, arrays)

    def _only(self, members: NDArray[np.bool_]) -> Self:
        part = copy.copy(self)
        part.classifier_ = self._fitted()._only(members)
        return part

    def _fitted(self) -> SetConvClassifier:
        if self.__sklearn_is_fitted__():
            return self.classifier_
        raise NotFittedError(
            f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")


def _fit_transform(encoder: Any, X: Any, keys: Keys | None) -> Any:
    """Fit the encoder and encode; it learns from copies once, or a copied class would show."""
    first = None if keys is None else np.unique(keys, return_index=True)[1]
    if first is None or len(first) == len(X):
        return encoder.fit_transform(X)
    return encoder.fit(np.asarray(X, dtype=object)[np.sort(first)].tolist()).transform(X)


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

    takes = "rows of a table"

    def __init__(
        self,
        encoder: FeatureEncoder | None = None,
        classifier: SetConvClassifier | None = None,
    ) -> None:
        super().__init__(encoder, classifier)

    def _make_encoder(self) -> Any:
        return _feature_encoder()() if self.encoder is None else clone(self.encoder)

    @classmethod
    def _saved_encoders(cls) -> Mapping[str, Any]:
        return {"FeatureEncoder": _feature_encoder()}


def _feature_encoder() -> Any:
    """Return the class when it is asked for: it needs pyarrow, which other models do without."""
    from setconv.io import FeatureEncoder

    return FeatureEncoder


def load(folder: str | Path, *, device: str = "auto") -> Any:
    """Load a model that was saved with ``save(folder)``.

    Parameters
    ----------
    folder : path
    device : str, default="auto"
        Where the model is to compute.

    Returns
    -------
    SetConvClassifier, SetConvTextClassifier or SetConvTableClassifier
        Fitted; its predictions are those of the saved one.

    Raises
    ------
    setconv.errors.ModelFileError
        If the folder is damaged, not a setconv model, or written by a newer version.
    """
    saved = read_model(Path(folder))
    if saved.kind == SetConvClassifier.__name__:
        estimator = SetConvClassifier()
        restore(estimator, saved, device)
        return estimator
    encoded: type[EncodedClassifier]
    if saved.kind == SetConvTableClassifier.__name__:
        encoded = SetConvTableClassifier
    elif saved.kind == "SetConvTextClassifier":  # imported only when a folder holds one
        encoded = import_module("setconv.text").SetConvTextClassifier
    else:
        raise ModelFileError(
            f"{folder} holds a {saved.kind}, which this version of setconv does not know: "
            "upgrade with pip install --upgrade setconv"
        )
    return encoded.restore(saved, Path(folder), device)
