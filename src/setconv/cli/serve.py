"""``setconv serve``: a saved model as a service."""

from __future__ import annotations

import os
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from setconv.cli import options
from setconv.cli.options import say
from setconv.errors import ParameterError

EPILOG = (
    "Examples: [bold]setconv serve model/[/]   "
    "[bold]SETCONV_TOKEN=secret setconv serve model/ --host 0.0.0.0 --workers 2[/]"
)


def command(
    model: options.Model,
    host: Annotated[str, Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Option("--port", min=0, max=65535, help="0 for a free one.")] = 8000,
    open_: Annotated[
        bool, Option("--open", help="Let others ask without a token, if --host lets them in.")
    ] = False,
    token_file: Annotated[
        Path | None, Option("--token-file", help="File of the token; else SETCONV_TOKEN is it.")
    ] = None,
    workers: Annotated[int, Option("--workers", min=1, help="Processes that answer.")] = 1,
    root_path: Annotated[str, Option("--root-path", help="Where a proxy has the service.")] = "",
    train: Annotated[
        str | None, Option("--train", help="Training file, for the nearest rows.")
    ] = None,
    label: options.Label = None,
    log_texts: Annotated[bool, Option("--log-texts", help="Log what requests hold, too.")] = False,
    max_rows: Annotated[int, Option(min=1, help="Rows of a request.")] = 1000,
    max_bytes: Annotated[int, Option(min=1000, help="Bytes of a request.")] = 4_000_000,
    max_text: Annotated[int, Option(min=1, help="Characters of a text.")] = 100_000,
    max_seconds: Annotated[float, Option(min=0.1, help="Seconds for an answer.")] = 30.0,
    max_waiting: Annotated[int, Option(min=1, help="Rows that may wait.")] = 4096,
    max_connections: Annotated[int, Option(min=1, help="Connections of a worker.")] = 1024,
    device: options.Device = "auto",
) -> None:
    """Serve a model: a page, and JSON for programs, until SIGTERM or Ctrl-C.

    SIGHUP has the folder read again without dropping a request. Each line of standard output is
    JSON: a request, without what it holds, or what happened.
    """
    from setconv.serve import Settings
    from setconv.serve.process import run

    token = os.environ.get("SETCONV_TOKEN")
    if token_file is not None:
        token = token_file.read_text(encoding="utf-8").strip()
    if token == "":
        raise ParameterError("The token is empty: write one, or leave it out.")
    limits = (max_rows, max_bytes, max_text, max_seconds, max_waiting, max_connections)
    rows = None if train is None else partial(_training_rows, train, label)
    settings = Settings(*limits, token, log_texts, root_path.rstrip("/"), device, rows)

    def started(address: str) -> None:
        say(f"{model} is served at {address}; Ctrl-C ends it")

    run(model, settings, (host, port), workers, to_all=open_, started=started)


def _training_rows(file: str, label: str | None, model: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Read the rows among which the nearest are sought, and what is told of each."""
    from setconv.cli.data import Reading, encoded, load_rows

    known = load_rows(file, Reading(), model=model, label=label, skip_empty=True)
    shown, called = (known.X, "text") if known.is_text else (known.X.to_pylist(), "values")
    rows = zip(known.numbers.tolist(), known.y.tolist(), map(_plain, shown), strict=True)
    told = [{"row": number, called: one, "label": label} for number, label, one in rows]
    return encoded(model, known.X, known.numbers), told


def _plain(value: Any) -> Any:
    """Return a text, or a row by column, as JSON has it; what is no finite number is missing."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
