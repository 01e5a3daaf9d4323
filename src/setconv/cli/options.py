"""What all commands share: how they speak to the user, and their arguments and options."""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import IO, Annotated, Any, Literal

from rich import box
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

Model = Annotated[Path, Argument(help="Folder of a saved model.", show_default=False)]
Data = Annotated[
    str,
    Argument(
        help="CSV, TSV, JSONL or Parquet, also gzipped; - reads standard input.", show_default=False
    ),
]
Text = Annotated[str | None, Option("--text", help="Column of the texts; found if not given.")]
Label = Annotated[str | None, Option("--label", help="Column of the labels; found if not given.")]
Id = Annotated[
    str | None, Option("--id", help="Column of what the rows are called, beside their numbers.")
]
_Formats = Literal["csv", "tsv", "jsonl", "parquet"]
Format = Annotated[
    _Formats | None,
    Option(
        "--format",
        help="csv, tsv, jsonl or parquet, if the name does not tell.",
        case_sensitive=False,
    ),
]
OutputFormat = Annotated[
    _Formats | None,
    Option("--output-format", help="csv, tsv, jsonl or parquet.", case_sensitive=False),
]
Encoding = Annotated[
    str | None, Option("--encoding", help="Of a text file, if not UTF-8 or found out.")
]
Objective = Annotated[
    str | None,
    Option(
        "--objective",
        help="What the decision is to be best for: balanced, f1, mcc, accuracy, recall>=0.95, "
        "precision>=0.8; with a confidence: 'recall>=0.9 @ 90%'.",
    ),
]
Prior = Annotated[
    float | None, Option("--prior", help="Share of the rarer class where the model is used.")
]
Json = Annotated[bool, Option("--json", help="Print JSON for machines.")]
Device = Annotated[str, Option("--device", help="A torch device, such as cpu or cuda.")]


EmptyRows = Annotated[
    Literal["error", "skip"],
    Option(
        "--empty",
        help="Rows without text, label or group: stop with an error, or skip and count them.",
    ),
]

EscapeFormulas = Annotated[
    bool,
    Option(
        "--escape-formulas",
        help="Put an apostrophe before what a spreadsheet would take for a formula (CSV, TSV).",
    ),
]
StripLabels = Annotated[
    bool,
    Option(
        "--strip-labels", help="Join labels that differ by case, or by spaces at their ends, only."
    ),
]

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

# Names of the library in its messages, and what is their like on the command line.
_FLAGS = {
    **{name: f"--{name}" for name in ("objective", "prior", "device", "format", "encoding")},
    **{name: f"--{name}" for name in ("text", "label", "features", "time", "keep", "pooling")},
    **{name: f"--{name}" for name in ("int8", "verify")},
    "groups": "--group",
    "y": "--label",
    "model": "--encoder",
    **{name: f"--{name.replace('_', '-')}" for name in ("max_length", "output_format")},
    "random_state": "--seed",
    "resume_from": "--resume",
    "checkpoint_dir": "its folder",
    "setconv.text.TfidfEncoder": "--encoder tfidf",
}
_PHRASES = (
    (r"go on with fit\(.*\)", "go on with the same command and --resume"),
    (r" in which model\.save_pretrained\(.*\) saved ", " that holds "),
    (r" \(model\.save_pretrained\(folder\) does\)", ""),
    (r"to checkpoint_dir=", "to "),
    (r"^model=", "--model "),
    (r"give its encoding\.", "give its --encoding."),
    (r"\[Errno -?\d+\] ", ""),
    (r"another folder with cache= or ", "another folder with "),
    (r"np\.str_\(('.*?'|\".*?\")\)", r"\1"),
    (r"np\.\w+\(([^()]*)\)", r"\1"),
)
# What stands in quotes is the user's own.
_QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_NAMES = "|".join(map(re.escape, sorted(_FLAGS, key=len, reverse=True)))
_NAMED = re.compile(rf"{_QUOTED}|(?<![\w./-])({_NAMES})(=None\b|=|(?![\w/.-]*[\w/]))")


def in_flags(message: str, parameter: str | None = None) -> str:
    """Return a message of the library in the words of the command line.

    ``name=value`` becomes ``--name value``. A name alone does if nothing else can be meant: it is
    no English word, or is the parameter that the message is about and begins with.
    """
    for found, words in _PHRASES:
        message = re.sub(found, words, message)

    def worded(match: re.Match[str]) -> str:
        name, end = match[1], match[2]
        begins = name == parameter and match.start() == 0
        if name is None or not (end or begins or "_" in name or "." in name):
            return match[0]
        return f"no {_FLAGS[name]}" if end == "=None" else _FLAGS[name] + " " * len(end)

    return _NAMED.sub(worded, message)


def say(message: str) -> None:
    """Tell the user something that is no result; the message is taken as it is."""
    err.print(visible(message), markup=False)


def show(message: str) -> None:
    """Print a line of a result; it is taken as it is."""
    out.print(visible(message), markup=False)


def tell(how_far: str) -> None:
    """Tell how far a command is where no bar tells it, every now and then."""
    if isinstance(sys.stderr, PlainLines):
        sys.stderr.write(f"\r{how_far}")


def stage(what: str) -> None:
    """Tell what is done now where no bar tells it."""
    if not err.is_terminal:
        say(f"{what} ...")


class PlainLines:
    """Standard error that is no terminal: bars are seen as lines, at most one in ten seconds.

    Parameters
    ----------
    stream : text file
    clock : callable, default=time.monotonic
        The seconds that have passed.
    """

    def __init__(self, stream: IO[str], clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._waiting, self._told, self._next = "", "", 0.0

    def write(self, text: str) -> int:
        """Write a text; one that begins with a carriage return is where a bar stands now."""
        if text.startswith("\r"):
            begins = not self._waiting
            self._waiting = _BAR.sub(" ", text).strip()
            if self._waiting and (begins or self._clock() >= self._next):
                self._tell()
        elif text == "\n" and self._waiting:  # the bar is closed
            self._tell()
            self._waiting = ""
        else:
            self._stream.write(text)
        return len(text)

    def _tell(self) -> None:
        if self._waiting != self._told:
            self._stream.write(f"{self._waiting}\n")
        self._told, self._next = self._waiting, self._clock() + _EVERY

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_EVERY = 10.0  # seconds
_BAR = re.compile(r"\s*\|[^|]*\|\s*|\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """Return a text whose control characters are seen, and do nothing to the terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def note(sentences: Iterable[str]) -> None:
    """Tell what was done to the features."""
    for sentence in sentences:
        say(f"note: {sentence}")


def table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None
) -> Table:
    """Return a table whose first column is text and whose others are numbers.

    With ``width`` the numbers have at least so many characters, close together.
    """
    made = Table(title=_cell(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    if width is not None:
        made.padding = (0, 0)
    for number, name in enumerate(head):
        side: Any = "left" if number == 0 else "right"
        made.add_column(_cell(name), justify=side, min_width=width if number else None)
    for row in rows:
        made.add_row(*(_cell(cell) for cell in row))
    return made


def _cell(value: Any) -> str:
    return escape(visible(str(value)))


def figure(value: float | None) -> str:
    """Return a metric with three digits, "n/a" if it is not defined."""
    return "n/a" if value is None or value != value else f"{value:.3f}"


def show_json(data: Any) -> None:
    """Print one JSON document, the result of a command that was asked for ``--json``."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def start_logging(verbose: bool) -> None:
    """Show the library's messages: warnings, with ``--verbose`` everything."""
    handler = RichHandler(console=err, show_time=False, show_path=False, markup=False)
    handler.setFormatter(_InFlags())
    logger = logging.getLogger("setconv")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    warnings.formatwarning = _sentence
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").handlers[:] = [handler]


class _InFlags(logging.Formatter):
    """Messages of the library in the words of the command line."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(in_flags(super().format(record)))


def _sentence(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    """Return a warning without the place in the library, which tells the user nothing."""
    return str(message) if category is UserWarning else f"{category.__name__}: {message}"
