"""The part of a file that is here, until it is whole."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from setconv.datasets.transfer import Answer
from setconv.errors import DataError
from setconv.files import write_atomically

logger = logging.getLogger("setconv")


class Part:
    """What has come so far of a file, and the note on which version of it that is.

    Parameters
    ----------
    target : Path
        Where the file is to lie in the end; the part and the note lie beside it.
    url : str
    resumable_blindly : bool
        Whether a part of an unknown version may be gone on from, because a checksum will tell.
    """

    def __init__(self, target: Path, url: str, *, resumable_blindly: bool) -> None:
        self.target, self.url = target, url
        self.path = target.with_name(f"{target.name}.part")
        self.note = target.with_name(f"{target.name}.part.json")
        self._blindly = resumable_blindly

    def validator(self) -> str | None:
        """Return what the server calls the version that the part is of."""
        try:
            known = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(known, dict) or known.get("url") != self.url:
            return None
        validator = known.get("validator")
        return validator if isinstance(validator, str) else None

    def start(self) -> int:
        """Return how many bytes are here that can be gone on from."""
        # Without a validator only the checksum can tell whether two halves belong together.
        if not self.path.exists() or not (self._blindly or self.validator()):
            return 0
        return self.path.stat().st_size

    def restart(self, validator: str | None) -> None:
        """Forget what is here; note which version is to come."""
        with self.writable():
            self.path.write_bytes(b"")
            note = {"url": self.url, "validator": validator}
            write_atomically(self.note, json.dumps(note).encode())

    def append(self, answer: Answer, bar: tqdm[Any]) -> None:
        """Take the bytes of an answer."""
        with self.writable(), self.path.open("ab") as file:
            for chunk in answer.chunks():
                file.write(chunk)
                bar.update(len(chunk))

    def finish(self, sha256: str | None) -> Path:
        """Check the file and move it to its place."""
        found = checksum(self.path)
        if sha256 is not None and found != sha256:
            aside = self.target.with_name(f"{self.target.name}.mismatch")
            self.path.replace(aside)
            self.note.unlink(missing_ok=True)
            raise DataError(
                f"{self.url} has another checksum than expected: SHA-256 {found}, not {sha256}. "
                f"The file is kept aside as {aside}; {self.target} is not touched. See whether "
                "the owner has published a new version, or remove it and try again."
            )
        with self.writable():
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
            self.path.replace(self.target)
            self.note.unlink(missing_ok=True)
        logger.info("%s is downloaded: SHA-256 %s.", self.target, found)
        return self.target

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Say in plain words why the disk does not take the file."""
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{self.target} cannot be written: {error.strerror or error}. What has come so "
                "far is kept; make space or choose another folder, and call again to go on."
            ) from error


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
