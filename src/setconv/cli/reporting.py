"""The figures of a model: on the terminal, as plain data, and as a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setconv.cli.data import Judged, Loaded, Reading, feature_names, inside
from setconv.cli.options import err, figure, out, say, show, show_json, table
from setconv.decisions.objective import weights_to_prior
from setconv.io.disk import show_bytes
from setconv.metrics.arithmetic import Rows
from setconv.metrics.report import (
    HEADINGS,
    WHY_NOT_THE_LARGEST,
    ClassMetrics,
    Report,
    report_of,
    show_bounds,
)

if TYPE_CHECKING:
    from setconv.estimate import FitEstimate
    from setconv.validation import Labels

TITLES = {
    "out_of_fold": "Each class against the rest, out of fold",
    "validation": "Each class against the rest, on validation rows",
    "none": "Each class against the rest: not measured",
}
_COLUMNS = (
    *("specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision"),
)


def show_classes(labels: Labels) -> None:
    """Show how many rows each class has, the rarest first."""
    counts, n_rows = labels.counts, len(labels)
    order = np.argsort(counts, kind="stable")
    rows = [[labels.names[i], f"{counts[i]:,}", f"{counts[i] / n_rows:.1%}"] for i in order]
    err.print(table(f"{n_rows:,} rows", ["class", "rows", "share"], rows))


def measured(model: Any, judged: Judged) -> Report:
    """Return the figures on rows that a model has judged.

    Where a prevalence was set, each class counts as much as it will where the model is used.
    """
    classes = model.classes_.tolist()
    rows, answers = Rows(tuple(classes), judged.truth, judged.decided, None), judged[2:]
    missing = [label for label, count in zip(classes, rows.counts, strict=True) if not count]
    if model.prior_ is None or missing:
        found = report_of(rows, *answers, confidence_intervals=True)
        if model.prior_ is None:
            return found
        note = (
            f"There is no row of {', '.join(map(repr, missing))}, so the figures are for the "
            "prevalence of the file, not for the one that was set."
        )
        return replace(found, notes=(note,))
    weights = weights_to_prior(judged.truth, model.prior_)
    found = report_of(replace(rows, weight=weights), *answers, confidence_intervals=True)
    prior = dict(zip(classes, model.prior_.tolist(), strict=True))
    # The weights are of classes, and the prevalence says so; no row has one of its own.
    return replace(found, weighted=False, prior=prior)


def show_figures(title: str, measured: Report, basis: str | None = None) -> None:
    """Print figures, and below them what to know about them, one sentence a line.

    Parameters
    ----------
    title : str
    measured : setconv.metrics.Report
    basis : str, optional
        What the thresholds rest on.
    """
    classes = measured.per_class.items()
    rows = [[label, *(_with_interval(of, name) for name in _COLUMNS)] for label, of in classes]
    head = ["class", *(HEADINGS[name] for name in _COLUMNS)]
    # Intervals of three digits fit into 80 columns, and a long name gives way to them.
    out.print(table(title, head, rows, width=len(".123-.456")))
    sentences = ["Below each figure is its 95 % interval.", *measured.remarks()]
    if basis is not None:
        sentences.append(f"Thresholds rest on: {basis}.")
    for sentence in (*sentences, WHY_NOT_THE_LARGEST):
        show(sentence)


def _with_interval(of: ClassMetrics, name: str) -> str:
    """Return a figure, and below it its 95 % interval."""
    return f"{figure(getattr(of, name))}\n{show_bounds(of.intervals.get(name))}".rstrip()


def show_estimate(found: FitEstimate, *, as_json: bool) -> None:
    """Print what a fit will take."""
    if as_json:
        show_json(asdict(found))
        return
    counts = ", ".join(f"{label!r} {count:,}" for label, count in found.classes.items())
    where = "read into memory" if found.in_memory else "read from disk when needed"
    minutes, seconds = divmod(round(found.seconds), 60)
    show(f"{found.n_rows:,} rows of {found.n_columns:,} columns, {where}")
    show(f"classes: {counts}")
    show(f"scratch file: at most {show_bytes(found.scratch_bytes)}")
    show(f"model folder: about {show_bytes(found.model_bytes)}")
    show(f"time: about {minutes} min {seconds} s, of {found.steps:,} steps and all else")


def report_facts(model: Any) -> dict[str, Any]:
    """Return a model's own figures as plain data."""
    return {
        "classes": by_class(model.classes_, model.class_counts_.tolist()),
        "objective": model.objective_,
        "prior": by_class(model.classes_, model.prior_),
        "threshold_basis": model.threshold_basis_,
        "report_source": model.report_source_,
        "report": model.report_.to_dict(),
    }


def by_class(classes: Any, values: Any) -> dict[str, Any] | None:
    """Return one value a class as plain data; None if there is none."""
    return None if values is None else dict(zip(map(str, classes), list(values), strict=True))


def write_report(
    model: Any,
    X: Any,
    rows: Loaded,
    path: Path,
    explain: Callable[[Sequence[int]], str] | None,
    data: str,
    **options: Any,
) -> None:
    """Write the page; of a table the classifier is shown with the encoded features.

    Parameters
    ----------
    model : fitted estimator
    X : list of str or array
        The rows that are judged, encoded.
    rows : Loaded
        The same rows as they were read.
    path : Path
    explain : callable or None
        As `explain_command` makes it.
    data : str
        The file of the rows.
    options : of `setconv.report.make_report`
    """
    from setconv.report.page import date_features, make_report

    page = make_report(
        inside(model),
        X,
        rows.y,
        feature_names=feature_names(model, () if rows.is_text else rows.X.column_names),
        data_name=Path(data).name,
        row_names=rows.row_names,
        dates=date_features(model),
        explain=explain,
        **options,
    )
    page.save(path)
    say(f"report written to {path}")


def explain_command(
    model: Path, data: str, rows: Loaded, reading: Reading
) -> Callable[[Sequence[int]], str] | None:
    """Return what makes the command that explains rows; None if they cannot be read again.

    Parameters
    ----------
    model : Path
        Folder of the model.
    data : str
        The file, or "-".
    rows : Loaded
        What was read of it; the command takes rows by their numbers in the file.
    reading : Reading
    """
    if data == "-":
        return None
    names = ("--text", "--id", "--format", "--encoding")
    options = zip(names, astuple(reading), strict=True)
    given = [word for name, value in options if value is not None for word in (name, value)]

    def command(positions: Sequence[int]) -> str:
        numbers = ",".join(str(rows.numbers[position]) for position in positions)
        return shlex.join(["setconv", "explain", str(model), data, "--rows", numbers, *given])

    return command
