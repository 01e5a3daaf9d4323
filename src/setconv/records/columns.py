"""Which column holds the texts, and which the labels."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.compute as pc

from setconv.errors import DataError
from setconv.names import excerpt, listed, require_column
from setconv.records.values import are_numbers, is_number, is_text, plain, without_missing

logger = logging.getLogger("setconv")

_TEXT_NAMES = {
    "text", "texts", "review", "reviews", "tweet", "sentence", "content", "message", "body",
    "comment", "document", "utterance", "question", "post", "description", "headline", "abstract",
    "verbatim",
}  # fmt: skip
_LABEL_NAMES = {
    "label", "labels", "class", "classes", "target", "sentiment", "y", "category", "outcome",
    "polarity", "intent", "topic",
}  # fmt: skip
_ROWS = 1000
_LONG = 20
_FEW_CLASSES = 20


def find_text_column(sample: pa.Table, given: str | None = None) -> str | None:
    """Return the name of the column that holds the texts.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows are looked at.
    given : str or None, default=None
        The name that the user gives; it must exist.

    Returns
    -------
    str or None
        The given name; else the only column with a common name (text, review, tweet ...) or, if
        there is none, with long strings. None if no column looks like text: a feature file. If
        several do, a `DataError` lists them with an example each.
    """
    if given is not None:
        return require_column(given, sample.column_names, "--text")
    table = _first_rows(sample)
    words = [name for name in table.column_names if _holds_words(table[name])]
    found = _by_name(words, _TEXT_NAMES, lambda name: _looks_like_text(table[name]))
    if not found:
        found = [name for name in words if _looks_like_text(table[name])]
        _say_guess("texts", found, "long strings")
    if len(found) > 1:
        raise _unsure("texts", "--text", found, table)
    return found[0] if found else None


def find_label_column(
    sample: pa.Table, given: str | None = None, *, exclude: Iterable[str] = ()
) -> str:
    """Return the name of the column that holds the labels.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows are looked at.
    given : str or None, default=None
        The name that the user gives; it must exist.
    exclude : iterable of str, default=()
        Columns that it is not, such as the texts.

    Returns
    -------
    str
        The given name; else the only column with a common name (label, class, sentiment ...) or,
        if there is none, with few distinct values. If none or several do, a `DataError` lists the
        candidates with an example each.
    """
    if given is not None:
        return require_column(given, sample.column_names, "--label")
    names = [name for name in sample.column_names if name not in set(exclude)]
    table = _first_rows(sample.select(names))
    found = _by_name(table.column_names, _LABEL_NAMES, lambda name: _few_values(table[name]))
    if not found:
        found = [name for name in table.column_names if _few_values(table[name])]
        _say_guess("labels", found, "few distinct values")
    if len(found) == 1:
        return found[0]
    raise _unsure("labels", "--label", found, table)


def _by_name(names: list[str], known: set[str], fits: Callable[[str], bool]) -> list[str]:
    """Return the columns with a known name; if none, those with a known word in it that fit."""
    exact = [name for name in names if name.strip().lower() in known]
    if len(exact) > 1:
        return [name for name in exact if fits(name)] or exact
    return exact or [name for name in names if known & set(_words(name)) and fits(name)]


def _words(name: str) -> list[str]:
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+", apart.lower())


def _first_rows(sample: pa.Table) -> pa.Table:
    table = sample.slice(0, _ROWS)
    return pa.table({name: plain(table[name]) for name in table.column_names})


def _holds_words(column: pa.ChunkedArray) -> bool:
    """Whether these are strings, and not all of them numbers."""
    if not is_text(column.type):
        return False
    known = without_missing(column).drop_null()
    return len(known) == 0 or not pc.all(are_numbers(known)).as_py()


def _looks_like_text(column: pa.ChunkedArray) -> bool:
    known = without_missing(column).drop_null()
    if len(known) == 0:
        return False
    long = pc.mean(pc.utf8_length(known)).as_py() >= _LONG
    spaced = pc.mean(pc.cast(pc.match_substring(known, " "), pa.uint8())).as_py() >= 0.5
    varied = pc.count_distinct(known).as_py() > min(_FEW_CLASSES, len(known) // 2)
    return bool(long and spaced and varied)


def _few_values(column: pa.ChunkedArray) -> bool:
    if not (is_text(column.type) or is_number(column.type) or pa.types.is_boolean(column.type)):
        return False
    known = (without_missing(column) if is_text(column.type) else column).drop_null()
    distinct = pc.count_distinct(known).as_py()
    return bool(2 <= distinct <= min(_FEW_CLASSES, max(len(known) // 2, 2)))


def _say_guess(what: str, found: list[str], reason: str) -> None:
    if len(found) == 1:
        logger.info("The %s are taken from %r, the only column with %s.", what, found[0], reason)


def _unsure(what: str, option: str, found: list[str], table: pa.Table) -> DataError:
    if not found:
        return DataError(
            f"Which column holds the {what}? None looks like it. The columns are "
            f"{listed(table.column_names)}: give one with {option}."
        )
    shown = ", ".join(f"{name!r} (such as {_example(table[name])})" for name in found[:10])
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return DataError(
        f"Which column holds the {what}? It could be {shown}{more}. Give one with {option}."
    )


def _example(column: pa.ChunkedArray) -> str:
    known = column.drop_null()
    return excerpt(known[0].as_py(), 30) if len(known) else "nothing"
