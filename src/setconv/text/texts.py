"""Texts as they come in from the user, checked and made into a list of strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from setconv.errors import DataError, DataTypeError

# Words of natural language take 3 to 6 characters a token. A text whose first 64 characters for
# each token do not fill the tokens that are read is no prose; beyond that nothing is looked at, so
# that a text of megabytes costs no more than one of a few pages.
_CHARACTERS_PER_TOKEN = 64
_SHOWN = 5


def check_texts(texts: Any) -> list[str]:
    """Return the texts as a list of strings that have something in them.

    Parameters
    ----------
    texts : sequence of str
        A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.
    """
    _refuse_other_kinds(texts)
    rows = _as_list(texts)
    if not rows:
        raise DataError("There are no texts: give at least one.")
    _refuse_what_is_no_text(rows)
    empty = [number for number, text in enumerate(rows) if not text.strip()]
    if empty:
        raise DataError(
            f"{len(empty)} of {len(rows)} texts are empty or only white space ({_name(empty)}): "
            "remove these rows."
        )
    return [_with_whole_characters(text) for text in rows]


def shorten(text: str, max_length: int) -> str:
    """Return the part of a text in which the first ``max_length`` tokens are."""
    limit = max_length * _CHARACTERS_PER_TOKEN
    return text if len(text) <= limit else " ".join(text.split())[:limit]


def _refuse_other_kinds(texts: Any) -> None:
    if isinstance(texts, (str, bytes)):
        raise DataTypeError(
            f"Got a single {type(texts).__name__} where texts are expected: give a list of "
            "strings, [text] for one."
        )
    if hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise DataTypeError(
            f"Got a table ({type(texts).__name__}) where texts are expected: give one column of "
            'it, such as table["text"].'
        )
    dimensions = getattr(texts, "ndim", 1)
    if dimensions != 1:
        raise DataTypeError(
            f"Got an array of {dimensions} dimensions where texts are expected: give one "
            "dimension, such as one column of it."
        )
    if isinstance(texts, (Mapping, Set)) or not isinstance(texts, Iterable):
        raise DataTypeError(
            f"Got a {type(texts).__name__} where texts are expected: give a list of strings."
        )


def _as_list(texts: Any) -> list[Any]:
    """Return plain Python values; numpy, pandas, polars and pyarrow each have a word for it."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(texts, method):
            values: list[Any] = getattr(texts, method)()
            return values
    return list(texts)


def _refuse_what_is_no_text(rows: Sequence[Any]) -> None:
    wrong = [number for number, value in enumerate(rows) if not isinstance(value, str)]
    missing = [number for number in wrong if _is_missing(rows[number])]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(rows)} texts are missing ({_name(missing)}): remove these "
            "rows."
        )
    if wrong:
        value = rows[wrong[0]]
        raise DataTypeError(
            f"{len(wrong)} of {len(rows)} texts are no strings ({_name(wrong)}); the first is "
            f"{_show(value)} of type {type(value).__name__}: {_remedy(value)}."
        )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, which has no truth value
        return True
    return isinstance(value, float) and value != value


def _remedy(value: Any) -> str:
    if isinstance(value, bytes):
        return "decode it first, for instance as UTF-8"
    return "convert them with str(), or choose the column that holds the texts"


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."


def _name(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:_SHOWN]))
    return f"row{'s' * (len(numbers) > 1)} {listed}{', ...' * (len(numbers) > _SHOWN)}"


def _with_whole_characters(text: str) -> str:
    """Return the text; halves of characters (lone surrogates), which UTF-8 lacks, are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
