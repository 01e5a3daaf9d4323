"""A line of a file of Amazon reviews: strict JSON, or a Python literal in the older files."""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass
from typing import Any

POSITIVE, NEGATIVE, NEUTRAL = "positive", "negative", "neutral"

# The files of 2014 and 2018 have the first names, those of 2023 the others.
_RATING = ("overall", "rating")
_TEXT = ("reviewText", "text")
_SUMMARY = ("summary", "title")
_PRODUCT = ("asin",)
_REVIEWER = ("reviewerID", "user_id")


@dataclass(frozen=True, slots=True)
class Review:
    """A review, its label made from its rating."""

    label: str
    text: str
    product: str
    reviewer: str


def parse_review(line: bytes, summary: bool) -> Review | str:
    """Return the review of a line, or what is wrong with it; ``summary`` puts its title first."""
    try:
        record = _record(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8: left out"
    if not isinstance(record, dict):
        return "neither JSON nor a Python literal of an object: left out"
    label = _label(_first(record, _RATING))
    if label is None:
        return "no rating from 1 to 5: left out"
    text = _words(record, _TEXT)
    if summary:
        text = "\n".join(filter(None, [_words(record, _SUMMARY), text]))
    if not text:
        return "no text: left out"
    return Review(label, text, _words(record, _PRODUCT), _words(record, _REVIEWER))


def _record(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return _literal(line)


def _literal(line: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.literal_eval(line.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _words(record: dict[str, Any], names: tuple[str, ...]) -> str:
    value = _first(record, names)
    return value.strip() if isinstance(value, str) else ""


def _label(rating: Any) -> str | None:
    try:
        stars = float(rating)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(rating, bool) or not 1 <= stars <= 5:
        return None
    return POSITIVE if stars > 3 else NEGATIVE if stars < 3 else NEUTRAL
