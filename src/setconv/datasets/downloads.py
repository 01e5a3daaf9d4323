"""Download a file so that it is there whole and checked, or not at all.

What has come so far lies beside the target, with a note on where it is from; the next call goes on
from there. Nothing here is called unless the user asks for a download.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from tqdm.auto import tqdm

from setconv.checks import check_integer
from setconv.datasets.part import Part, checksum
from setconv.datasets.transfer import InterruptedTransferError, StaleStartError, request
from setconv.errors import DataError, ParameterError

logger = logging.getLogger("setconv")

Progress = Literal["auto"] | bool

_LONGEST_WAIT = 60.0


def download(
    url: str,
    target: str | Path,
    sha256: str | None,
    *,
    progress: Progress = "auto",
    retries: int = 5,
    timeout: float = 30.0,
) -> Path:
    """Download a file; resume it if a part of it is here.

    Parameters
    ----------
    url : str
        An address that starts with http:// or https://.
    target : str or Path
        Where the file is to lie. It appears there when it is whole and checked, not before.
    sha256 : str or None
        Its checksum as 64 hexadecimal digits. None: its owner tells none; then only its length is
        checked, and a log message tells the checksum that it has.
    progress : {"auto", True, False}, default="auto"
        Whether to show a bar; "auto" does on a terminal.
    retries : int, default=5
        How often in a row to try again without a new byte, waiting 1, 2, 4 ... seconds.
    timeout : float, default=30.0
        Seconds of silence after which a connection is given up.

    Returns
    -------
    Path
        The target. If it is there already with this checksum (or any, with None), nothing is
        downloaded.
    """
    path = Path(target)
    wanted = _checked(url, sha256, progress, retries, timeout)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give the path that the file is to have.")
    if path.exists() and (wanted is None or checksum(path) == wanted):
        logger.info("%s is there already; nothing is downloaded.", path)
        return path
    part = Part(path, url, resumable_blindly=wanted is not None)
    with part.writable():
        path.parent.mkdir(parents=True, exist_ok=True)
    bar = sys.stderr.isatty() if progress == "auto" else progress
    resumed = _fetch(part, bar, retries, timeout)
    if wanted is not None and resumed and checksum(part.path) != wanted:
        logger.warning("%s: the resumed file has another checksum; it is loaded anew.", url)
        part.restart(None)
        _fetch(part, bar, retries, timeout)
    return part.finish(wanted)


def _fetch(part: Part, bar: bool, retries: int, timeout: float) -> bool:
    """Bring the whole file into the part; return whether some of it was here before."""
    failures, furthest = 0, part.start()
    resumed = furthest > 0
    name = part.target.name
    with tqdm(unit="B", unit_scale=True, unit_divisor=1024, desc=name, disable=not bar) as shown:
        while True:
            try:
                resumed &= _once(part, shown, timeout)
            except StaleStartError as error:
                logger.warning("%s: %s; it is loaded anew.", part.url, error)
                part.restart(None)
                resumed = False
            except InterruptedTransferError as error:
                failures = 0 if part.start() > furthest else failures + 1
                furthest = max(furthest, part.start())
                _wait(part, error, failures, retries)
            else:
                return resumed


def _once(part: Part, bar: tqdm[Any], timeout: float) -> bool:
    """Ask once and take what comes; return whether it went on from what was here."""
    with request(part.url, part.start(), part.validator(), timeout) as answer:
        if answer.start == 0:
            part.restart(answer.validator)
        bar.total = answer.total
        bar.n = answer.start
        part.append(answer, bar)
    if answer.total is not None and part.path.stat().st_size != answer.total:
        raise StaleStartError("what is here is longer than the file; is it downloaded twice?")
    return answer.start > 0


def _wait(part: Part, error: InterruptedTransferError, failures: int, retries: int) -> None:
    if failures > retries:
        kept = part.start()
        so_far = f" {kept:,} bytes are kept, and the next call goes on from there." if kept else ""
        raise DataError(
            f"{part.url} cannot be downloaded: {error}, after {failures} tries in a row. Check the "
            f"address and the network, and call again.{so_far}"
        ) from error
    seconds = min(error.wait or 2.0 ** max(failures - 1, 0), _LONGEST_WAIT)
    logger.warning("%s: %s; trying again in %g s.", part.url, error, seconds)
    time.sleep(seconds)


def _checked(
    url: str, sha256: str | None, progress: Progress, retries: int, timeout: float
) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or re.search(r"\s", url):
        raise ParameterError(f"url={url!r}: give an address that starts with http:// or https://.")
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ParameterError(f"sha256={sha256!r}: give 64 hexadecimal digits, or None.")
    if progress not in ("auto", True, False):
        raise ParameterError(f'progress={progress!r}: choose True, False or "auto".')
    check_integer("retries", retries, least=0)
    if not timeout > 0:
        raise ParameterError(f"timeout={timeout!r}: give a number of seconds above 0.")
    return None if sha256 is None else sha256.lower()
