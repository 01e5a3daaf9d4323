"""Estimators with an encoder in front of the classifier, and opening any saved one.

`EncodedClassifier` is an encoder and a `setconv.SetConvClassifier` in one estimator, fitted,
predicted with and saved together; `SetConvTextClassifier` is the one for texts, and
`SetConvTableClassifier` the one for tables. `load` opens what ``save`` wrote.
"""

from __future__ import annotations

import copy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from setconv.classifier import EncodedRows, SetConvClassifier, check_parameters
from setconv.decisions.rule import Predictions
from setconv.errors import ModelFileError, ParameterError
from setconv.messages import excerpt
from setconv.model import under
from setconv.nn.network import resolve_device
from setconv.persistence import (
    SavedModel,
    describe,
    read_model,
    restore,
    save,
    understood,
    version_of,
)
from setconv.sampling import Keys, text_keys
from setconv.validation import check_texts

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]

# Encoders that can be saved without pickle. Each is imported when a model has one: what it needs
# (transformers, pyarrow) others do without.
_ENCODERS = {
    "FeatureEncoder": "setconv.io",
    "TextEncoder": "setconv.text.encoder",
    "TfidfEncoder": "setconv.text.tfidf",
}


def _encoder_class(kind: str) -> Any:
    return getattr(import_module(_ENCODERS[kind]), kind)


def _from_classifier(name: str) -> property:
    said = f"``{name}`` of the classifier; see `setconv.SetConvClassifier`."
    return property(lambda self: getattr(self._fitted(), name), doc=said)


class EncodedClassifier(ClassifierMixin, BaseEstimator):
    """An encoder and a `setconv.SetConvClassifier` that is fitted on its rows.

    A subclass says which encoder it makes (`_make_encoder`).

    Parameters
    ----------
    encoder : object
        What makes the rows.
    classifier : SetConvClassifier or None
        None for one with defaults.
    """

    takes: ClassVar[str] = "rows"
    encoder_: Any
    classifier_: SetConvClassifier
    source_: Any = None  # names of the columns of a file, if the command line fitted the model

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
        time: Any = None,
        resume_from: str | Path | None = None,
    ) -> Self:
        """Encode the rows and fit the classifier; arguments as for `SetConvClassifier.fit`.

        ``time`` is an array here; what the encoder learns without labels is from all rows.
        """
        encoder = self._make_encoder()
        keys = self._keys(X)
        classifier = SetConvClassifier() if self.classifier is None else clone(self.classifier)
        rows = _fit_transform(encoder, X, keys)
        if X_val is not None:
            X_val = EncodedRows(encoder.transform(X_val), self._keys(X_val))
        classifier.fit(
            EncodedRows(rows, keys, self._names(encoder)),
            y,
            sample_weight,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            time=time,
            resume_from=resume_from,
        )
        self.encoder_, self.classifier_ = encoder, classifier
        return self

    def _make_encoder(self) -> Any:
        """Return a new, unfitted encoder."""
        raise NotImplementedError

    def _keys(self, X: Any) -> Keys | None:  # noqa: ARG002
        """Return numbers that are equal for copies; None: for rows that are encoded alike."""
        return None

    def _names(self, encoder: Any) -> Array | None:  # noqa: ARG002
        """Return what the columns of encoded rows are called, if that tells the user anything."""
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

    def _describe(self, *, copy_encoder: bool = False) -> SavedModel:
        saved = describe(self._fitted())
        kind = type(self.encoder_).__name__
        if kind not in _ENCODERS or type(self.encoder_) is not _encoder_class(kind):
            known = ", ".join(_ENCODERS)
            why = f"An encoder of type {kind} cannot be saved without pickle (these can: {known})."
            hint = "The classifier of its rows can be: model.classifier_.save(folder)."
            raise ModelFileError(why, hint=hint)
        config, arrays = self.encoder_.describe()
        files = self.encoder_.files if copy_encoder else {}
        encoder = {"kind": kind, **config}
        told = {"takes": self.takes, "encoder": encoder, "source": self.source_}
        own = {f"encoder/{name}": np.array(one) for name, one in arrays.items()}
        return SavedModel(type(self).__name__, saved.config | told, saved.arrays | own, files)

    @classmethod
    def restore(cls, saved: SavedModel, classifier: SetConvClassifier) -> Self:
        """Return the estimator that was saved; `setconv.load` calls this."""
        described = dict(saved.config["encoder"])
        kind = _encoder_class(described.pop("kind"))
        if saved.files:
            copies = next(iter(saved.files.values())).parent
            described |= {"model": str(copies), "revision": None}
        encoder = kind.restore(described, under("encoder/", saved.arrays))
        if getattr(encoder, "revision", None) is None:  # else it may have to be downloaded first
            width = len(encoder.get_feature_names_out())
            if width != classifier.n_features_in_:
                raise ValueError(f"{width} columns, but {classifier.n_features_in_} are needed")
        estimator = cls(encoder=clone(encoder), classifier=clone(classifier))
        estimator.encoder_, estimator.classifier_ = encoder, classifier
        estimator.source_ = saved.config.get("source")
        return estimator

    def _only(self, members: NDArray[np.bool_]) -> Self:
        part = copy.copy(self)
        part.classifier_ = self._fitted()._only(members)
        return part

    def _fitted(self) -> SetConvClassifier:
        check_is_fitted(self, "classifier_")
        return self.classifier_


def _fit_transform(encoder: Any, X: Any, keys: Keys | None) -> Any:
    """Fit the encoder and encode; it learns from copies once, or a copied class would show."""
    first = None if keys is None else np.unique(keys, return_index=True)[1]
    if first is None or len(first) == len(X):
        return encoder.fit_transform(X)
    return encoder.fit(np.asarray(X, dtype=object)[np.sort(first)].tolist()).transform(X)


class SetConvTextClassifier(EncodedClassifier):
    """Classify texts when the class that matters is rare.

    Texts come as a list of strings, a numpy array, or a pandas, polars or Arrow column. They are
    encoded once: the embeddings of `TextEncoder` are kept in a cache on disk, so cross-validation
    and grid search do not encode again.

    Parameters
    ----------
    encoder : str, transformer or callable, default="all-MiniLM-L6-v2"
        The name or folder of a Hugging Face model, "tfidf", a `TextEncoder` or `TfidfEncoder`, any
        scikit-learn transformer of texts, or a function from texts to an array.
    classifier : SetConvClassifier or None, default=None
        None for one with defaults. Its parameters can be searched as ``classifier__lr`` and so on
        if it is given.

    Attributes
    ----------
    encoder_ : transformer
        The fitted encoder.
    classifier_ : SetConvClassifier
        The classifier that was fitted on its rows. Its fitted attributes (``classes_``,
        ``threshold_``, ``oof_report_`` ...) are this estimator's too.

    Examples
    --------
    >>> from setconv import SetConvClassifier, SetConvTextClassifier
    >>> texts = ["stuck in traffic", "fire on main street", "lovely day", "house is on fire"] * 10
    >>> labels = ["chatter", "incident", "chatter", "incident"] * 10
    >>> fast = SetConvClassifier(max_steps=20, random_state=0)
    >>> model = SetConvTextClassifier("tfidf", fast).fit(texts, labels)
    >>> model.predict(["a fire in the street"]).tolist()
    ['incident']
    """

    takes = "texts"

    def __init__(
        self, encoder: Any = "all-MiniLM-L6-v2", classifier: SetConvClassifier | None = None
    ) -> None:
        super().__init__(encoder, classifier)

    def save(self, folder: str | Path, *, copy_encoder: bool = False) -> None:
        """Save encoder and classifier as one folder: safetensors, JSON and a card; no pickle.

        Parameters
        ----------
        folder : path
            A setconv model in it is replaced in one move; other files stay.
        copy_encoder : bool, default=False
            Whether to copy the files of a Hugging Face encoder into the folder, so that it works
            where the encoder is not installed. By default the folder says which one it is.
        """
        save(self._describe(copy_encoder=copy_encoder), Path(folder))

    def _make_encoder(self) -> Any:
        encoder = self.encoder
        if isinstance(encoder, (str, Path)):
            if str(encoder) == "tfidf":
                return _encoder_class("TfidfEncoder")()
            return _encoder_class("TextEncoder")(str(encoder))
        if hasattr(encoder, "transform"):
            return clone(encoder)
        if callable(encoder):
            return FunctionTransformer(encoder)
        raise ParameterError(
            f"encoder={encoder!r}: give the name or folder of a model, 'tfidf', a transformer of "
            "texts, or a function.",
            parameter="encoder",
        )

    def _keys(self, X: Any) -> Keys:
        return text_keys(check_texts(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


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

    def _make_encoder(self) -> Any:
        return _encoder_class("FeatureEncoder")() if self.encoder is None else clone(self.encoder)

    def _names(self, encoder: Any) -> Array | None:
        names = getattr(encoder, "get_feature_names_out", None)
        return None if names is None else np.asarray(names())


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
    place, target = Path(folder), resolve_device(device)
    while True:
        version = version_of(place)
        try:
            return _load(place, device, target)
        except ModelFileError:
            if version_of(place) == version:
                raise  # else saves came in between, and the second took the copied files away


def _load(folder: Path, device: str, target: torch.device) -> Any:
    saved = read_model(folder)
    with understood(folder):
        classifier = SetConvClassifier(device=device)
        restore(classifier, saved, target)
        check_parameters(classifier)
        if saved.kind == SetConvClassifier.__name__:
            return classifier
        for encoded in (SetConvTextClassifier, SetConvTableClassifier):
            if saved.kind == encoded.__name__:
                return encoded.restore(saved, classifier)
    raise ModelFileError(
        f"{folder} holds a {excerpt(saved.kind)}, which this version of setconv does not know: "
        "upgrade with pip install --upgrade setconv"
    )
