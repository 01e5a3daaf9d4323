"""Files that are there whole or not at all.

A file is written beside its place, under a name that starts with a dot, and moved there: whoever
reads sees the old or the new one. What a killed writer leaves behind nobody locks any more, and the
next writer to the same place removes it. Processes that share work keep each other out by locks,
which the system takes from whoever ends.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

if sys.platform != "win32":
    import fcntl


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write, which takes its place at the end; after an error it is gone.

    A file that was there passes its owner and mode on to the new one.
    """
    remove_leftovers(path)
    file, temporary = _new_file(path)
    try:
        _take_mode(file, path)
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
    sync_folder(path.parent)


def write_atomically(path: Path, content: bytes | Path) -> None:
    """Write a file, or copy one, beside its place and move it there."""
    with replaced(path) as file:
        if isinstance(content, Path):
            with content.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
        else:
            file.write(content)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of this file left beside it."""
    for one in path.parent.glob(f".{glob.escape(path.name)}.new-*"):
        if one.is_file():  # a pipe would never open
            with suppress(OSError), one.open("rb") as file:
                if _lock(file.fileno(), wait=False):
                    one.unlink()


@contextmanager
def locked_folder(folder: Path, if_waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Keep other processes that lock the folder out, which wait; where locks work."""
    if sys.platform == "win32":  # a folder cannot be opened there
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if if_waiting is not None and _lock(handle, wait=False) is False:
            if_waiting()
        _lock(handle, wait=True)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Claim:
    """What one process has for itself, until it gives it back or ends.

    Attributes
    ----------
    path : Path
        A file that is there as long.
    handle : int or None
        Of the locked file; None where files cannot be locked, and others may have the same.
    """

    path: Path
    handle: int | None

    def release(self) -> None:
        """Give it back."""
        if self.handle is not None:
            self.path.unlink(missing_ok=True)  # while it is locked: the next file is another's
            os.close(self.handle)


def claim(path: Path) -> Claim | None:
    """Claim what a file stands for; None if another process has it."""
    while sys.platform != "win32":
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        locked = _lock(handle, wait=False)
        # Before it was locked, the one who had it may have removed it.
        with suppress(FileNotFoundError):
            if locked and os.path.samestat(path.stat(), os.fstat(handle)):
                return Claim(path, handle)
        os.close(handle)
        if locked is False:
            return None
        if locked is None:
            path.unlink(missing_ok=True)
            break
    return Claim(path, None)


def why_not(error: OSError) -> str:
    """Return in plain words why a file cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return "the disk is full" if full else error.strerror or str(error)


def sync_folder(folder: Path) -> None:
    """See to it that a move within a folder survives a loss of power, where that can be had."""
    if sys.platform != "win32":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _new_file(path: Path) -> tuple[IO[bytes], Path]:
    """Return a new file beside a place, locked by this process."""
    while True:
        temporary = path.with_name(f".{path.name}.new-{secrets.token_hex(4)}")
        file = temporary.open("xb")
        _lock(file.fileno(), wait=True)
        # Before it was locked, another writer may have taken it for a leftover.
        with suppress(FileNotFoundError):
            if os.path.samestat(temporary.stat(), os.fstat(file.fileno())):
                return file, temporary
        file.close()


def _take_mode(file: IO[bytes], path: Path) -> None:
    """Give a file the owner and the mode of the one that it will replace, if there is one."""
    with suppress(OSError):
        before = path.stat()
        if sys.platform != "win32":
            with suppress(OSError):  # only root may give files away
                os.fchown(file.fileno(), before.st_uid, before.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))


def _lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file for as long as it is open; return whether nobody else had it.

    Windows needs no lock: an open file cannot be removed there. It is None for file systems
    without locks, on which leftovers stay.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
