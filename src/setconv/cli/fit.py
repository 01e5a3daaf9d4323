"""``setconv fit``: from a file of rows and labels to a model folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.options import note, say, show_json, stage
from setconv.errors import CheckpointError, DataError, ModelFileError

if TYPE_CHECKING:
    from setconv.cli.data import Loaded
    from setconv.estimate import FitEstimate

EPILOG = (
    "Examples: [bold]setconv fit reviews.csv --text review --label sentiment -o model/[/]   "
    "[bold]setconv fit fraud.parquet --label fraud --objective 'recall>=0.95' -o model/[/]"
)


def command(
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model.", show_default=False)
    ],
    text: options.Text = None,
    label: options.Label = None,
    features: Annotated[
        str | None,
        typer.Option("--features", help='Feature columns, "a,b,c"; "all" for all but the label.'),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", help="Column of groups whose rows stay in one fold."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Column of times: each row is judged by earlier ones."),
    ] = None,
    id_column: options.Id = None,
    encoder: Annotated[
        str,
        typer.Option("--encoder", help='Name or folder of a Hugging Face model, or "tfidf".'),
    ] = "all-MiniLM-L6-v2",
    objective: options.Objective = "balanced",
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a report of the fit to this HTML page.")
    ] = None,
    copy_encoder: Annotated[
        bool, typer.Option("--copy-encoder", help="Copy the encoder's files into the folder.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a fit that was interrupted.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what the fit would read and write, and how long; write nothing."
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same data and seed: same model.")] = 0,
    empty: options.EmptyRows = "error",
    strip_labels: options.StripLabels = False,
    device: options.Device = "auto",
    file_format: options.Format = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
) -> None:
    """Fit a model to a file of texts, or of features, and labels.

    First it says what so many rows of the rarest class can promise. The figures that are printed
    are out of fold: every row is judged by networks that did not see it, with 95 % intervals.
    Ctrl-C leaves a checkpoint, and so does SIGTERM; the same command with --resume goes on.

    Labels that differ by case only, or by spaces at their ends, are refused: --strip-labels joins
    them under the most frequent spelling, without the spaces.

    A Parquet file or folder whose features are more than 256 MB of numbers, without gaps, is never
    read into memory as a whole: it is read three times, and the rows that training draws are copied
    to a scratch file. The environment variable SETCONV_IN_MEMORY sets another size. With --report,
    or --empty skip, it is read whole, as any other file is.

    --dry-run stops before the fit: the time is told from a few steps on made-up rows of the same
    shape, from the first rows of the file and, of texts, from a few that are encoded anew.
    """
    from setconv.cli import reporting
    from setconv.cli.data import Reading, encoded, load_rows
    from setconv.decisions.minimums import promises_of

    reading = Reading(text, id_column, file_format, encoding)
    skip, checkpoint = empty == "skip", output.with_name(f"{output.name}.checkpoint")
    _refuse_early(output, report, objective, device, checkpoint if resume else None)

    def estimated(model: Any, rows: Loaded) -> FitEstimate:
        from setconv.estimate import estimate_fit

        stage("timing a few steps")
        return estimate_fit(model, rows.X, rows.labels, groups=rows.groups, time=rows.time)

    def fit(*, stream: bool) -> tuple[Any, Loaded]:
        given: Any = {"label": label, "features": features, "group": group, "time": time}
        beside: Any = {"skip_empty": skip, "join_labels": strip_labels, "stream": stream}
        rows = load_rows(data, reading, **given, **beside)
        labels = rows.labels
        reporting.show_classes(labels)
        # Of later rows nothing can be promised; of one class the fit says what is wrong.
        if time is None and len(labels.names) > 1:
            say(str(promises_of(labels.names.tolist(), labels.codes, rows.groups)))
        model = _make(rows, encoder, objective, device, seed, checkpoint)
        try:
            if dry_run:
                return estimated(model, rows), rows
            return _fit(model, rows, checkpoint, resume), rows
        except DataError as error:
            if not rows.on_disk or error.column not in rows.X.columns:
                raise
            say(f"note: all rows are read into memory, for gaps have to be filled. {error}")
            return fit(stream=False)

    model, rows = fit(stream=report is None and not skip)
    if dry_run:
        reporting.show_estimate(model, as_json=as_json)
        return
    note(getattr(model.encoder_, "notes_", ()))
    model.source_ = rows.source
    model.classifier_.progress = "auto"  # that a command showed it is no part of the model
    stage(f"saving {output}")
    model.save(output, **({"copy_encoder": True} if copy_encoder and rows.is_text else {}))
    shutil.rmtree(checkpoint, ignore_errors=True)
    if report is not None:
        X = encoded(model, rows.X, rows.numbers)
        explain = reporting.explain_command(output, data, rows, reading)
        reporting.write_report(model, X, rows, report, explain, data, out_of_fold=True)
    say(f"model saved in {output}")
    if as_json:
        show_json({"model": str(output), **reporting.report_facts(model)})
    else:
        reporting.show_figures(
            reporting.TITLES[model.report_source_], model.report_, model.threshold_basis_
        )


def _refuse_early(
    output: Path, report: Path | None, objective: Any, device: str, checkpoint: Path | None
) -> None:
    """Refuse what would be refused after hours otherwise."""
    from setconv.decisions.objective import parse_objective
    from setconv.nn.network import resolve_device
    from setconv.training.checkpoint import FILE_NAME

    parse_objective(objective, ())
    resolve_device(device)
    if output.exists() and not output.is_dir():
        raise ModelFileError(f"{output} is a file: give a folder to save the model in.")
    if report is not None and report.is_dir():
        raise ModelFileError(f"{report} is a folder: give --report the name of a page in it.")
    if checkpoint is not None and not (checkpoint / FILE_NAME).is_file():
        raise CheckpointError(
            f"There is no checkpoint in {checkpoint}, so there is nothing to go on with: fit "
            "without --resume, or give the --output of the fit that was interrupted."
        )


def _make(
    rows: Loaded, encoder: str, objective: Any, device: str, seed: int, checkpoint: Path
) -> Any:
    from setconv.classifier import SetConvClassifier

    classifier = SetConvClassifier(
        objective=objective,
        device=device,
        random_state=seed,
        checkpoint_dir=checkpoint,
        progress=True,
    )
    if rows.on_disk:  # numbers only: there is nothing to encode
        return classifier
    if not rows.is_text:
        from setconv.pipelines import SetConvTableClassifier

        return SetConvTableClassifier(classifier=classifier)
    from setconv.pipelines import SetConvTextClassifier

    if encoder == "tfidf":
        return SetConvTextClassifier("tfidf", classifier)
    from setconv.text.encoder import TextEncoder

    return SetConvTextClassifier(TextEncoder(encoder, device=device, progress=True), classifier)


def _fit(model: Any, rows: Loaded, checkpoint: Path, resume: bool) -> Any:
    try:
        beside: Any = {"groups": rows.groups, "time": rows.time}
        model.fit(rows.X, rows.labels, **beside, resume_from=checkpoint if resume else None)
    except KeyboardInterrupt:
        say(
            "interrupted; the same command with --resume goes on from the checkpoint in "
            f"{checkpoint}"
            if checkpoint.is_dir()
            else "interrupted before training; what was encoded is in the cache: run it again"
        )
        raise
    except DataError as error:
        if error.row is not None and len(rows.numbers) < rows.numbers[-1] and not rows.is_text:
            from setconv.io.encoder import FeatureEncoder

            # The row is one of those that were kept: name it by its number in the file.
            FeatureEncoder().fit(rows.X).transform(rows.X, rows=rows.numbers)
        raise
    return _with_encoder(model) if rows.on_disk else model


def _with_encoder(classifier: Any) -> Any:
    """Return a classifier of columns of numbers as the model that any other table gives."""
    from setconv.io.encoder import FeatureEncoder
    from setconv.pipelines import SetConvTableClassifier

    model = SetConvTableClassifier(classifier=classifier)
    model.encoder_ = FeatureEncoder.of_numbers(classifier.feature_names_in_)
    del classifier.feature_names_in_  # what the encoder gives has no names
    model.classifier_ = classifier
    return model
