"""``setconv experiment``: studies run, resumed and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setconv.cli.options import out, say, table

if TYPE_CHECKING:
    from setconv.experiment.study import Study

app = typer.Typer(
    help="Run a study of many data sets and methods, and report what it says.",
    no_args_is_help=True,
)

StudyName = Annotated[
    str,
    typer.Argument(metavar="STUDY", help="A built-in study (see `list`) or a YAML file."),
]
Results = Annotated[
    Path | None,
    typer.Option(
        "--results",
        "-r",
        help="Folder that keeps the results; by default experiments/NAME.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="Only this data set; can be given again.", show_default=False),
]
Methods = Annotated[
    list[str] | None,
    typer.Option("--method", help="Only this method; can be given again.", show_default=False),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats", min=1, help="Number of splits instead of the study's.", show_default=False
    ),
]


@app.command("list", epilog="Example: [bold]setconv experiment list[/]")
def list_studies() -> None:
    """List the built-in studies, and the names that a study file can give to methods."""
    from setconv.experiment import built_in_studies, method_names, read_studies

    rows = []
    for name in built_in_studies():
        studies = read_studies(name)
        cells = sum(len(one.data) * len(one.methods) for one in studies)
        rows.append([name, len(studies), cells])
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
        int | None,
        typer.Option(
            "--jobs", min=1, help="Worker processes; one a core by default.", show_default=False
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Compute again what failed earlier.")
    ] = False,
) -> None:
    """Compute the cells of a study that are missing.

    A cell is one method on one split of one data set. Ctrl-C or a crash loses only the cells that
    are at work: the same command goes on. After an edit of the study only what changed is
    computed again.
    """
    from setconv.experiment import run_study

    studies = _chosen(study, dataset, method, repeats)
    for one in studies:
        folder = _within(_results(study, results), one, studies)
        say(f"{one.name}: results go to {folder}")
        try:
            tally = run_study(one, folder, data=data, jobs=jobs, retry_failed=retry_failed)
        except KeyboardInterrupt:
            say(f"interrupted: finished cells are in {folder}; the same command goes on")
            raise
        say(
            f"{one.name}: {tally.ok} cells computed, {tally.skipped} there already, "
            f"{tally.failed} failed"
        )


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
            "--output",
            "-o",
            help="Folder for the report; by default report/ beside the results.",
            show_default=False,
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

    studies = _chosen(study, dataset, method, repeats)
    command = f"setconv experiment run {study} --data FOLDER"
    for one in studies:
        folder = _within(_results(study, results), one, studies)
        found = findings(one, folder, command)
        place = folder / "report" if output is None else _within(output, one, studies)
        page, *_ = write_report(found, place)
        if not quiet:
            out.print(Markdown(markdown_text(found)))
        say(f"{one.name}: the report is {page}")


def _chosen(
    study: str, data: list[str] | None, methods: list[str] | None, repeats: int | None
) -> list[Study]:
    from setconv.experiment.study import read_studies

    chosen = [one.choose(data or (), methods or ()) for one in read_studies(study)]
    if repeats is not None:
        chosen = [replace(one, split=replace(one.split, repeats=repeats)) for one in chosen]
    return chosen


def _within(folder: Path, study: Study, studies: list[Study]) -> Path:
    """Return the folder of a study: one of its own where there are several."""
    return folder / study.name if len(studies) > 1 else folder


def _results(study: str, results: Path | None) -> Path:
    return Path("experiments") / Path(study).stem if results is None else results
