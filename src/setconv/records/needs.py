"""pyarrow is optional: without it the message has the line that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from setconv.errors import MissingDependencyError


@contextmanager
def needed(what: str, package: str) -> Iterator[None]:
    """Import inside this block; a failure says what needs the package and how to get it."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} needs {package}: pip install 'setconv[cli]'"
        ) from error
