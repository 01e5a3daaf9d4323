"""What should become of a column, learned from its values, and said in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setconv.errors import DataError
from setconv.names import count_of, excerpt
from setconv.records.plans import CategoryPlan, NumberPlan, Plan, VectorPlan, as_categories
from setconv.records.values import (
    are_dates,
    are_numbers,
    as_numbers,
    is_date,
    is_number,
    is_text,
    is_vector,
    plain,
    without_missing,
)

_NEARLY = 0.9
_ENOUGH = 20


def plan_column(name: str, column: Any, max_categories: int) -> tuple[Plan | None, list[str]]:
    """Return what becomes of a column, None if it is left out, and notes on it."""
    column = plain(column)
    kind = column.type
    if is_vector(kind):
        return _plan_vector(name, column)
    if is_number(kind):
        return _plan_numbers(name, column, "number")
    if pa.types.is_boolean(kind):
        return _plan_numbers(name, column, "boolean")
    if is_date(kind):
        return _plan_numbers(name, column, "date")
    if pa.types.is_null(kind):
        return None, [f"{name}: left out, because all its values are missing."]
    if is_text(kind):
        return _plan_texts(name, column, max_categories)
    return None, [f"{name}: left out, because values of type {kind} cannot be features."]


def _plan_texts(name: str, column: Any, max_categories: int) -> tuple[Plan | None, list[str]]:
    known = without_missing(column).drop_null()
    if len(known) == 0:
        return None, [f"{name}: left out, because all its values are missing."]
    numeric = are_numbers(known)
    if pc.all(numeric).as_py():
        return _plan_numbers(name, column, "number")
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(known))
    if pc.all(pc.is_in(lower, pa.array(["true", "false"], lower.type))).as_py():
        return _plan_numbers(name, column, "boolean")
    if are_dates(known):
        return _plan_numbers(name, column, "date")
    plan, notes = _plan_categories(name, column, max_categories)
    share = pc.mean(pc.cast(numeric, pa.uint8())).as_py()
    if share >= _NEARLY:
        bad = known.filter(pc.invert(numeric))
        notes.append(
            f"{name}: not taken as numbers, because {len(bad)} of {len(known)} values are not, "
            f"such as {excerpt(bad[0].as_py())}."
        )
    return plan, notes


def _plan_numbers(name: str, column: Any, kind: str) -> tuple[Plan | None, list[str]]:
    numbers = as_numbers(column, kind, name, 1)
    missing = np.isnan(numbers)
    n_missing = int(missing.sum())
    known = numbers[~missing] if n_missing else numbers
    if len(known) == 0:
        return None, [f"{name}: left out, because all its values are missing."]
    if not n_missing and known.min() == known.max():
        return None, [f"{name}: left out, because it is {known[0]:g} in every row."]
    median = float(np.median(known))
    notes = []
    if kind == "date":
        notes.append(f"{name}: dates became days since 1970-01-01.")
    if n_missing:
        notes.append(
            f"{name}: {count_of(n_missing, 'missing value was', 'missing values were')} filled "
            f"with the median {median:g}, and a second column says where."
        )
    return NumberPlan(name, kind, median, n_missing > 0), notes


def _plan_categories(name: str, column: Any, max_categories: int) -> tuple[Plan | None, list[str]]:
    texts = as_categories(column)
    n_missing = texts.null_count
    counts = pc.value_counts(texts.drop_null())
    # Equally frequent ones in the order of the alphabet: the order of the rows must not matter.
    found = sorted(
        ((one["counts"], one["values"]) for one in counts.to_pylist()),
        key=lambda pair: (-pair[0], pair[1]),
    )
    n_known = len(texts) - n_missing
    if len(found) == n_known and n_known > 1:
        return None, [f"{name}: left out, because it has another value in every row."]
    if n_known >= _ENOUGH and 2 * len(found) > n_known:
        return None, [
            f"{name}: left out, because {len(found)} of its {n_known} values are distinct, as in a "
            "free text."
        ]
    if len(found) == 1 and not n_missing:
        return None, [f"{name}: left out, because it is {excerpt(found[0][1])} in every row."]
    kept = [value for _, value in found[:max_categories]]
    plan = CategoryPlan(name, kept, n_missing > 0)
    if len(found) > len(kept):
        notes = [
            f"{name}: the {len(kept)} most frequent of {len(found)} categories became a column "
            "each, the others share one."
        ]
    else:
        notes = [f"{name}: {count_of(len(kept), 'category', 'categories')} became a column each."]
    if n_missing:
        notes.append(
            f"{name}: {count_of(n_missing, 'missing value is', 'missing values are')} a category "
            "of their own."
        )
    return plan, notes


def _plan_vector(name: str, column: Any) -> tuple[Plan | None, list[str]]:
    lengths = pc.list_value_length(column)
    width = pc.max(lengths).as_py()
    if not width:
        raise DataError(f"The column {name!r} has only empty lists. Leave it out.")
    return VectorPlan(name, width), []
