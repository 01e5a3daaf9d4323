"""Opening a saved model."""

from __future__ import annotations

from pathlib import Path

from setconv.classifier import SetConvClassifier
from setconv.errors import ModelFileError
from setconv.persistence import read_model
from setconv.saving import restore


def load(folder: str | Path, *, device: str = "auto") -> SetConvClassifier:
    """Load a model that was saved with ``clf.save(folder)``.

    Parameters
    ----------
    folder : path
    device : str, default="auto"
        Where the model is to compute.

    Returns
    -------
    SetConvClassifier
        Fitted; its predictions are those of the saved one.

    Raises
    ------
    setconv.errors.ModelFileError
        If the folder is damaged, not a setconv model, or written by a newer version.
    """
    saved = read_model(Path(folder))
    if saved.kind != SetConvClassifier.__name__:
        raise ModelFileError(
            f"{folder} holds a {saved.kind}, which this version of setconv does not know: "
            "upgrade with pip install --upgrade setconv"
        )
    estimator = SetConvClassifier()
    restore(estimator, saved, device)
    return estimator
