"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there; a reader sees the old or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_folder(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write a folder of files beside its place and move it there.

    A name may have folders in it; a path as content is a file to copy.

    A folder that was there is moved aside first and removed last: if the process dies in between,
    it lies beside ``folder`` under a name that starts with ``.<name>.old``, and nothing is lost.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.new-"))
    try:
        temporary.chmod(0o777 & ~_umask())
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
    aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old-"))
    try:
        folder.replace(aside)
    except BaseException:
        aside.rmdir()
        raise
    try:
        new.replace(folder)
    except BaseException:
        aside.replace(folder)
        raise
    with contextlib.suppress(OSError):
        shutil.rmtree(aside)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
