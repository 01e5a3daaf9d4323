"""What `TextEncoder` needs beside setconv itself; `TfidfEncoder` needs none of it."""

from __future__ import annotations

from importlib.util import find_spec

from setconv.errors import MissingDependencyError

INSTALL_TEXT = "pip install 'setconv[text]'"
INSTALL_OFFLINE = "pip install 'setconv[offline]'"


def require_transformers() -> None:
    """Refuse to go on without transformers; looks for it without the cost of importing it."""
    if find_spec("transformers") is None:
        raise MissingDependencyError(
            f"TextEncoder needs transformers: {INSTALL_TEXT}. "
            "setconv.text.TfidfEncoder works without it."
        )
