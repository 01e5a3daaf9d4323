"""Files and folders that are there whole or not at all.

Both are written beside their place, under a name that starts with a dot, and moved there: whoever
reads sees the old or the new one.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write, which takes its place at the end; after an error it is gone."""
    temporary = _beside(path, "new")
    file = temporary.open("xb")
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # a full disk refuses the last buffered bytes once more
            file.close()
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there."""
    with replaced(path) as file:
        file.write(content)


def replace_folder(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write a folder of files beside its place and move it there.

    A name may have folders in it; a path as content is a file to copy.

    A folder that was there is moved aside first and removed last: if the process dies in between,
    it lies beside ``folder`` under a name that starts with ``.<name>.old``, and nothing is lost.
    """
    temporary = _beside(folder, "new")
    temporary.mkdir(parents=True)
    try:
        for name, content in files.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, target)
            else:
                write_atomically(target, content)
        if folder.exists():
            _swap(temporary, folder)
        else:
            temporary.replace(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _swap(new: Path, folder: Path) -> None:
    """Put ``new`` in the place of ``folder``, which is back in its place if that fails."""
    aside = _beside(folder, "old")
    folder.replace(aside)
    try:
        new.replace(folder)
    except BaseException:
        aside.replace(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}-{secrets.token_hex(4)}")
