"""`SetConvTextClassifier`: an encoder of texts and a SetConv classifier in one estimator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from setconv.classifier import SetConvClassifier
from setconv.errors import ParameterError
from setconv.persistence import save
from setconv.pipelines import EncodedClassifier
from setconv.sampling import Keys, text_keys
from setconv.text.encoder import TextEncoder, check_texts
from setconv.text.tfidf import TfidfEncoder

_COPIED = "encoder"  # the folder inside a model folder for the encoder's own files


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
    >>> from setconv import SetConvClassifier
    >>> from setconv.text import SetConvTextClassifier
    >>> texts = ["stuck in traffic", "fire on main street", "lovely day", "house is on fire"] * 10
    >>> labels = ["chatter", "incident", "chatter", "incident"] * 10
    >>> fast = SetConvClassifier(max_steps=20, random_state=0)
    >>> model = SetConvTextClassifier("tfidf", fast).fit(texts, labels)
    >>> model.predict(["a fire in the street"]).tolist()
    ['incident']
    """

    saved_encoders: ClassVar[dict[str, Any]] = {
        "TextEncoder": TextEncoder,
        "TfidfEncoder": TfidfEncoder,
    }
    takes = "texts"

    def __init__(
        self,
        encoder: Any = "all-MiniLM-L6-v2",
        classifier: SetConvClassifier | None = None,
    ) -> None:
        super().__init__(encoder, classifier)

    def save(self, folder: str | Path, *, copy_encoder: bool = False) -> None:
        """Save encoder and classifier as one folder: safetensors, JSON and a card; no pickle.

        Parameters
        ----------
        folder : path
            Replaced in one move if it holds a setconv model; refused if it holds anything else.
        copy_encoder : bool, default=False
            Whether to copy the files of a Hugging Face encoder into the folder, so that it works
            where the encoder is not installed. By default the folder says which one it is.
        """
        saved = self._describe()
        if copy_encoder and isinstance(self.encoder_, TextEncoder):
            files = self.encoder_.find_files().files
            described = {**saved.config["encoder"], "copied": _COPIED}
            saved = replace(
                saved,
                config={**saved.config, "encoder": described},
                files={f"{_COPIED}/{name}": path for name, path in files.items()},
            )
        save(saved, Path(folder))

    @staticmethod
    def _restore_encoder(
        kind: Any, described: dict[str, Any], arrays: dict[str, NDArray[Any]], folder: Path
    ) -> Any:
        copied = described.pop("copied", None)
        where = None if copied is None else folder / copied
        return kind.restore(described, arrays, where)

    def _make_encoder(self) -> Any:
        encoder = self.encoder
        if isinstance(encoder, (str, Path)):
            return TfidfEncoder() if str(encoder) == "tfidf" else TextEncoder(str(encoder))
        if hasattr(encoder, "transform"):
            return clone(encoder)
        if callable(encoder):
            return FunctionTransformer(encoder)
        raise ParameterError(
            f"encoder={encoder!r}: give the name or folder of a model, 'tfidf', a transformer of "
            "texts, or a function."
        )

    def _keys(self, X: Any) -> Keys:
        return text_keys(check_texts(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
