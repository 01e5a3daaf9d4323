"""Opening a saved model."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from setconv.classifier import SetConvClassifier
from setconv.errors import ModelFileError
from setconv.persistence import read_model
from setconv.saving import restore

# Estimators with an encoder in front; imported only when a folder holds one.
_ENCODED = {
    "SetConvTextClassifier": "setconv.text",
    "SetConvTableClassifier": "setconv.table",
}


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
    if saved.kind in _ENCODED:
        kind = getattr(import_module(_ENCODED[saved.kind]), saved.kind)
        return kind.restore(saved, Path(folder), device)
    if saved.kind != SetConvClassifier.__name__:
        raise ModelFileError(
            f"{folder} holds a {saved.kind}, which this version of setconv does not know: "
            "upgrade with pip install --upgrade setconv"
        )
    estimator = SetConvClassifier()
    restore(estimator, saved, device)
    return estimator
