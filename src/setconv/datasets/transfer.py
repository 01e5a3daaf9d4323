"""One HTTP request for a file, or for the rest of one."""

from __future__ import annotations

import http.client
import io
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from setconv._version import __version__
from setconv.errors import DataError

CHUNK = 1 << 16

# Worth another try: too busy, too slow, or broken for the moment.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNSATISFIABLE = 416
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)$")


class InterruptedTransferError(Exception):
    """The transfer stopped for a reason that may pass.

    Attributes
    ----------
    wait : float or None
        Seconds that the server asks to wait for.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class StaleStartError(Exception):
    """The bytes that are here already do not fit what the server has."""


@dataclass(frozen=True)
class Answer:
    """An open response, to be used as a context manager.

    Attributes
    ----------
    start : int
        Where in the file its bytes begin; 0 if the server sends the whole file.
    total : int or None
        Bytes of the whole file; None if the server does not say.
    validator : str or None
        What the server calls this version of the file, to resume just that one.
    """

    response: Any
    start: int
    total: int | None
    validator: str | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()

    def chunks(self) -> Iterator[bytes]:
        """Iterate over the bytes; an end before the announced one is an interruption."""
        at = self.start
        with _lost_connection():
            while chunk := self.response.read(CHUNK):
                at += len(chunk)
                yield chunk
        if self.total is not None and at < self.total:
            raise InterruptedTransferError(f"the connection ended at {at:,} of {self.total:,}")


def request(url: str, start: int, validator: str | None, timeout: float) -> Answer:
    """Ask for a file from byte ``start`` on.

    Parameters
    ----------
    url : str
    start : int
    validator : str or None
        Of the version that the first bytes are from; if the file has changed since, the server
        sends the whole.
    timeout : float
        Seconds of silence after which the connection is given up.
    """
    headers = {"User-Agent": f"setconv/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if validator is not None:
            headers["If-Range"] = validator
    try:
        with _lost_connection():
            response = urllib.request.urlopen(
                urllib.request.Request(url, headers=headers), timeout=timeout
            )
    except urllib.error.HTTPError as error:
        with error:
            if (
                error.code == _UNSATISFIABLE
                and error.headers["Content-Range"] == f"bytes */{start}"
            ):
                # All of it is here: the last run ended just before it was moved to its place.
                return Answer(io.BytesIO(), start, start, validator)
            raise _refused(url, error) from error
    return _answer(response, start)


def _answer(response: Any, start: int) -> Answer:
    headers = response.headers
    # A weak tag does not promise the same bytes.
    tag = headers.get("ETag")
    validator = headers.get("Last-Modified") if tag is None or tag.startswith("W/") else tag
    if response.status != http.client.PARTIAL_CONTENT:
        length = headers.get("Content-Length", "")
        return Answer(response, 0, int(length) if length.isdigit() else None, validator)
    found = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
    if found is None or int(found[1]) != start:
        response.close()
        problem = "the server sent another part than the one asked for"
        raise StaleStartError(problem) if start else InterruptedTransferError(problem)
    total = None if found[2] == "*" else int(found[2])
    return Answer(response, start, total, validator)


def _refused(url: str, error: urllib.error.HTTPError) -> Exception:
    said = f"{error.code} {error.reason}"
    if error.code == _UNSATISFIABLE:
        return StaleStartError(f"the server has no bytes after those that are here ({said})")
    if error.code in _PASSING:
        wait = error.headers.get("Retry-After", "")
        return InterruptedTransferError(
            f"the server answered {said}", float(wait) if wait.isdigit() else None
        )
    hint = {
        401: "It asks for a login: download the file in a browser, and give its path.",
        403: "It is not given to everyone: ask its owner, or download it in a browser.",
        404: "It may have moved: look for the new address on its owner's page.",
        410: "It was withdrawn: ask its owner.",
    }.get(error.code, "Open the address in a browser to see what the server says.")
    return DataError(f"{url} cannot be downloaded: the server answered {said}. {hint}")


@contextmanager
def _lost_connection() -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as error:
        raise InterruptedTransferError(f"no connection ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        said = str(error) or type(error).__name__
        raise InterruptedTransferError(f"the connection broke ({said})") from error
