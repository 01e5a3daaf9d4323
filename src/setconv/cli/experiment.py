"""``setconv experiment``: studies run, resumed and reported."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setconv.cli.options import out, say, table
from setconv.errors import StudyError
from setconv.messages import count_of

if TYPE_CHECKING:
    from setconv.experiment.results import Findings
    from setconv.experiment.study import Study

_MOST_FAILURES = 10  # kinds of them that are told; the report has all

app = typer.Typer(
    help="Run a study of many data sets and methods, and report what it says.", no_args_is_help=True
)

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study (see `list`) or a YAML file.")
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results", "-r", help="Folder that keeps the results; by default experiments/NAME."
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--dataset", help="Only this data set; can be given again.")
]
Methods = Annotated[
    list[str] | None, typer.Option("--method", help="Only this method; can be given again.")
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, help="Number of splits instead of the study's.")
]


@app.command("list", epilog="Example: [bold]setconv experiment list[/]")
def list_studies() -> None:
    """List the built-in studies, and the names that a study file can give to methods."""
    from setconv.experiment import built_in_studies, method_names, read_studies

    rows = []
    for name in built_in_studies():
        studies = read_studies(name)
        rows.append([name, len(studies), sum(len(one.data) * len(one.methods) for one in studies)])
    out.print(table("Built-in studies", ["name", "parts", "data sets x methods"], rows))
    out.print(f"Methods: {', '.join(method_names())}", markup=False)


@app.command(epilog="Example: [bold]setconv experiment run stand-ins --data data/[/]")
def run(
    study: StudyName,
    data: Annotated[
        Path, typer.Option("--data", "-d", help="Folder in which the study's paths begin.")
    ] = Path(),
    results: Results = None,
    dataset: Only = None,
    method: Methods = None,
    repeats: Repeats = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Worker processes; one a core by default.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute again what failed earlier.")
    ] = False,
    recompute_outdated: Annotated[
        bool,
        typer.Option(
            "--recompute-outdated", help="Compute again what another version of setconv computed."
        ),
    ] = False,
) -> None:
    """Compute the cells of a study that are missing.

    A cell is one method on one split of one data set. Ctrl-C or a crash loses only the cells that
    are at work: the same command goes on. After an edit of the study only what changed is
    computed again. The same command in several terminals shares the cells among them. It ends with
    exit code 1 if cells of the study failed.
    """
    from setconv.experiment import findings, run_study

    options = {"retry_failed": retry_failed, "recompute_outdated": recompute_outdated}
    failures: list[str] = []
    for one, part in _chosen(study, dataset, method, repeats):
        folder = _results(study, results) / part
        say(f"{one.name}: results go to {folder}")
        try:
            tally = run_study(one, folder, data=data, jobs=jobs, **options)
        except KeyboardInterrupt:
            say(f"interrupted: finished cells are in {folder}; the same command goes on")
            raise
        elsewhere = f", {tally.elsewhere} by other processes" if tally.elsewhere else ""
        say(
            f"{one.name}: {tally.ok} cells computed{elsewhere}, {tally.skipped} there already, "
            f"{tally.failed} failed"
        )
        found = findings(one, folder)
        if len(found.outdated):
            say(
                f"{one.name}: another version of setconv ({found.outdated_by}) computed "
                f"{count_of(len(found.outdated), 'cell')}; --recompute-outdated computes them again"
            )
        failures += _failures(found)
    if failures:
        raise StudyError("\n".join(failures), hint="\n--retry-failed computes them again.")


def _failures(found: Findings) -> list[str]:
    """Return how many cells failed, then which and why."""
    from setconv.experiment.tables import failure_sheet

    if not len(found.failed):
        return []
    told = failure_sheet(found).table
    lines = [f"{count_of(len(found.failed), 'cell')} of {found.study.name} failed:"]
    for row in told.reset_index().head(_MOST_FAILURES).to_numpy():
        data, method, status, splits, error = map(str, row)
        lines.append(f"  {data} / {method} / {splits}: {status}: {error}")
    if len(told) > _MOST_FAILURES:
        lines.append(f"  and {len(told) - _MOST_FAILURES} kinds more, which the report lists.")
    return lines


@app.command(epilog="Example: [bold]setconv experiment report stand-ins[/]")
def report(
    study: StudyName,
    results: Results = None,
    dataset: Only = None,
    method: Methods = None,
    repeats: Repeats = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the report; by default report/ beside the results."
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Write files only, print no tables.")
    ] = False,
) -> None:
    """Print the tables of a study and write tables, figures and a page of it.

    It can be asked for at any time: cells that are missing are said to be.
    """
    from rich.markdown import Markdown

    from setconv.experiment import findings, write_report
    from setconv.experiment.page import markdown_text

    options = ["--results", str(_results(study, results))]
    for name, values in (("--dataset", dataset), ("--method", method)):
        options += [word for value in values or () for word in (name, value)]
    options += [] if repeats is None else ["--repeats", str(repeats)]
    for one, part in _chosen(study, dataset, method, repeats):
        folder = _results(study, results) / part
        found = _with_command(findings(one, folder), study, options)
        place = folder / "report" if output is None else output / part
        page, *_ = write_report(found, place)
        if not quiet:
            out.print(Markdown(markdown_text(found)))
        say(f"{one.name}: the report is {page}")


def _with_command(found: Findings, study: str, options: list[str]) -> Findings:
    """Return findings that say by which command they were computed, and where it is given.

    A page of a built-in study is for others, who have its data in a folder of their own.
    """
    from setconv.experiment import built_in_studies

    start = ["setconv", "experiment", "run", study, "--data"]
    if study in built_in_studies() or not found.data:
        return replace(found, command=shlex.join([*start, "FOLDER", *options]))
    here, data = Path.cwd(), Path(found.data)
    data = data.relative_to(here) if data.is_relative_to(here) else data
    notes = tuple(note.replace("FOLDER/", f"{data}/") for note in found.notes)
    command = shlex.join([*start, str(data), *options])
    return replace(found, command=command, place=str(here), notes=notes)


def _chosen(
    study: str, data: list[str] | None, methods: list[str] | None, repeats: int | None
) -> list[tuple[Study, str]]:
    """Return the studies, each with its folder among the results: its own if there are several."""
    from setconv.experiment.study import read_studies

    chosen = [one.choose(data or (), methods or ()) for one in read_studies(study)]
    if repeats is not None:
        chosen = [replace(one, split=replace(one.split, repeats=repeats)) for one in chosen]
    return [(one, one.name if len(chosen) > 1 else "") for one in chosen]


def _results(study: str, results: Path | None) -> Path:
    return Path("experiments") / Path(study).stem if results is None else results
