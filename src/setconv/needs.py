"""Optional packages: missing ones are named with the line that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from setconv.errors import MissingDependencyError


@contextmanager
def needed(what: str, package: str, extra: str) -> Iterator[None]:
    """Import inside this block; a failure says what needs the package and how to get it."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} needs {package}: pip install 'setconv[{extra}]'"
        ) from error
