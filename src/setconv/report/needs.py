"""Optional packages: missing ones are named with the line that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from setconv.errors import MissingDependencyError


@contextmanager
def needed(package: str) -> Iterator[None]:
    """Import inside this block; a failure says how to get the package."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"the report needs {package}: pip install 'setconv[report]'"
        ) from error
