"""A file that is there whole or not at all, written piece by piece; or standard output."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from setconv.errors import DataError
from setconv.names import did_you_mean
from setconv.records.sources import STANDARD

_FULL = {errno.ENOSPC, errno.EDQUOT}


class Target:
    """Where bytes go.

    A regular file is written beside its place and moved there by `commit`. What is no regular
    file (standard output, a pipe, a device) is written directly.

    Parameters
    ----------
    target : str or Path
        "-" for standard output.
    """

    def __init__(self, target: str | Path) -> None:
        self._temporary: Path | None = None
        self._place: Path | None = None
        if str(target) == STANDARD:
            self.name = "standard output"
            self.file: IO[bytes] = sys.stdout.buffer
            return
        self.name = str(target)
        path = Path(target)
        # A link stays a link: the file that it points to is replaced.
        place = path.resolve()
        with self.explained():
            if path.exists() and not path.is_file() and not path.is_dir():
                self.file = path.open("wb")
                return
            _refuse_wrong_place(path, place)
            self._place = place
            self._temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
            self.file = self._temporary.open("xb")

    def commit(self) -> None:
        """Put the file in its place."""
        try:
            with self.explained():
                self.file.flush()
                if self._temporary is not None and self._place is not None:
                    os.fsync(self.file.fileno())
                    self.file.close()
                    self._temporary.replace(self._place)
                elif self.file is not sys.stdout.buffer:
                    self.file.close()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave nothing behind."""
        if self.file is sys.stdout.buffer:
            return
        try:
            self.file.close()
        except OSError:
            # A full disk refuses the last buffered bytes once more; the file goes away anyway.
            pass
        finally:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say in plain words why the file cannot be written."""
        try:
            yield
        except BrokenPipeError:
            raise
        except PermissionError as error:
            raise DataError(
                f"{self.name} cannot be written: no permission in its folder. Choose another "
                "place, or change the permissions."
            ) from error
        except OSError as error:
            if error.errno in _FULL:
                raise DataError(
                    f"{self.name} cannot be written: the disk is full. Nothing was left "
                    "half-written. Free some space, or choose another place, and run again."
                ) from error
            raise DataError(
                f"{self.name} cannot be written: {error.strerror or error}. Choose another place."
            ) from error


def _refuse_wrong_place(target: Path, place: Path) -> None:
    folder = place.parent
    if place.is_dir():
        raise DataError(f"{target} is a folder. Give the name of a file in it.")
    if not folder.is_dir():
        near = (
            did_you_mean(folder.name, (one.name for one in folder.parent.iterdir() if one.is_dir()))
            if folder.parent.is_dir()
            else ""
        )
        raise DataError(
            f"{target} cannot be written: there is no folder {target.parent}.{near} Make it first, "
            "or choose another place."
        )
