"""Which format a file has: by what was asked for, by its name, or by its first bytes."""

from __future__ import annotations

from pathlib import Path

from setconv.errors import DataError, ParameterError

FORMATS = ("csv", "tsv", "jsonl", "parquet")
GZIP_MAGIC = b"\x1f\x8b"
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"

_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def checked_format(given: str) -> str:
    """Return a format that the user names, in lower case; an unknown one is refused."""
    if given.lower() in FORMATS:
        return given.lower()
    raise ParameterError(f"format={given!r}: the formats are {', '.join(FORMATS)}.")


def format_of_name(path: Path) -> str:
    """Return the format that the extension stands for, a final .gz left out."""
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = path.with_suffix("").suffix.lower()
    if ending in _EXTENSIONS:
        return _EXTENSIONS[ending]
    known = ", ".join(_EXTENSIONS)
    what = f"the extension {ending!r} is unknown" if ending else "it has no extension"
    hint = " Save the sheet as CSV first." if ending in {".xls", ".xlsx", ".ods"} else ""
    raise DataError(
        f"{path}: which format is it? The file name does not say, {what}. Known are {known}, each "
        f"also with .gz. Give --format {'|'.join(FORMATS)} (in Python: format=...).{hint}"
    )


def names_gzip(path: Path) -> bool:
    """Whether a file of this name is to be compressed."""
    return path.suffix.lower() == ".gz"


def sniffed_format(head: bytes) -> str:
    """Return the format of a stream that has no name, from its first bytes."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    return "csv"
