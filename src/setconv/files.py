"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
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


def replace_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Write a folder of files beside its place and move it there.

    A folder that was there is moved aside first and removed last: if the process dies in between,
    it lies beside ``folder`` under a name that starts with ``.<name>.old``, and nothing is lost.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.new-"))
    try:
        temporary.chmod(0o777 & ~_umask())
        for name, content in files.items():
            write_atomically(temporary / name, content)
        aside: Path | None = None
        if folder.exists():
            aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old-"))
            folder.replace(aside)
        try:
            temporary.replace(folder)
        except BaseException:
            if aside is not None:
                aside.replace(folder)
            raise
        if aside is not None:
            with contextlib.suppress(OSError):
                shutil.rmtree(aside)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
