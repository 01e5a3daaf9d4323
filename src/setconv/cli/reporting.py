"""The report of a model on the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setconv.cli.data import Loaded


def write_report(
    model: Any,
    rows: Loaded,
    known: Loaded | None,
    path: Path,
    *,
    data_name: str,
    out_of_fold: bool = False,
) -> None:
    """Write the page; of a table the classifier is shown with the encoded features.

    Parameters
    ----------
    model : fitted estimator
    rows, known : Loaded, Loaded or None
        The rows that are judged, and the training rows.
    path : Path
    data_name : str
    out_of_fold : bool, default=False
        Whether the rows are the training rows, each judged by members that left it out.
    """
    from setconv.report import make_report

    shown, names, encode = model, None, _as_it_is
    if not rows.is_text and hasattr(model, "encoder_"):
        shown, encode = model.classifier_, model.encode
        names = list(model.encoder_.get_feature_names_out())
    X = encode(rows.X)
    train = None
    if known is not None:
        train = (X if known is rows else encode(known.X), known.y)
    page = make_report(
        shown,
        X,
        rows.y,
        feature_names=names,
        train=train,
        data_name=data_name,
        out_of_fold=out_of_fold,
    )
    page.save(path)


def _as_it_is(X: Any) -> Any:
    return X
