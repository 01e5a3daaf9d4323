"""The command line: parses, calls the library, prints; nothing else."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command line; the entry point of ``setconv``."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    missing = [name for name in ("typer", "rich", "pyarrow") if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        sys.stderr.write(f"The command line needs {names}: pip install 'setconv[cli]'\n")
        raise SystemExit(5)
    from setconv.cli.app import run

    run()
