"""A text with its words marked by what they add to a score, and words and features ranked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from setconv.explain.words import WordContributions
from setconv.report.evaluation import Floats
from setconv.report.wording import number_of, readable

_SHOWN = 320  # characters of a text
_LEVELS = 3
_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True)
class Piece:
    """Part of a text, with a level from -3 (speaks against the class) to 3 (speaks for it)."""

    text: str
    level: int


@dataclass(frozen=True)
class Weight:
    """A word or feature and what it adds.

    Attributes
    ----------
    name : str
    value : float
        The mean contribution to the score.
    width : float
        For a bar: per cent of the largest one shown.
    detail : str
        In how many texts, or which values.
    column : int or None
        Of a feature: where it stands.
    """

    name: str
    value: float
    width: float
    detail: str
    column: int | None = None


def plain_pieces(text: str) -> list[Piece]:
    """Return a text without marks, cut to what is shown."""
    return [Piece(readable(text, _SHOWN), 0)]


def marked_pieces(text: str, of: WordContributions) -> list[Piece]:
    """Return a text, cut to what is shown, with its words marked."""
    largest = max(np.abs(of.values).max(initial=0.0), 1e-9)
    levels = np.round(_LEVELS * of.values / largest).astype(int).tolist()
    pieces: list[Piece] = []
    for (start, end), level in zip(of.spans, levels, strict=True):
        if start >= _SHOWN:
            pieces.append(Piece("…", 0))
            break
        word = readable(text[start:end], max(_SHOWN - start, 12))
        if pieces and pieces[-1].level == level:
            pieces[-1] = Piece(f"{pieces[-1].text} {word}", level)
        else:
            pieces.append(Piece(word, level))
    return pieces or plain_pieces(text)


def strongest_words(found: Sequence[WordContributions], limit: int) -> list[Weight]:
    """Return the words that add most to the score, over all texts together."""
    total: dict[str, float] = defaultdict(float)
    texts: dict[str, set[int]] = defaultdict(set)
    for number, of in enumerate(found):
        if of.words_per_piece > 1:
            continue
        for word, value in zip(of.words, of.values.tolist(), strict=True):
            bare = _EDGES.sub("", word).lower()
            if bare:
                total[bare] += value
                texts[bare].add(number)
    ranked = sorted(total, key=lambda word: (-total[word], word))[:limit]
    chosen = [word for word in ranked if total[word] > 0]
    values = [total[word] / len(found) for word in chosen]
    details = [f"in {len(texts[word])} of {len(found)} texts" for word in chosen]
    return _weights([readable(word, 30) for word in chosen], values, details)


def strongest_features(
    names: Sequence[str], values: Floats, rows: Floats, background: Floats, limit: int
) -> list[Weight]:
    """Return the features that change the score most, on average over the rows."""
    mean = values.mean(axis=0)
    chosen = np.argsort(-np.abs(mean), kind="stable")[:limit]
    chosen = chosen[mean[chosen] != 0]
    here = np.median(rows, axis=0)
    weights = _weights(
        [readable(names[i], 40) for i in chosen],
        mean[chosen].tolist(),
        [f"{number_of(here[i])}, usually {number_of(background[i])}" for i in chosen],
    )
    return [replace(one, column=int(i)) for one, i in zip(weights, chosen, strict=True)]


def feature_values(names: Sequence[str], row: Floats, columns: Sequence[int]) -> list[Piece]:
    """Return some features of a row as text."""
    shown = [f"{readable(names[i], 40)} = {number_of(row[i])}" for i in columns]
    return [Piece(" · ".join(shown), 0)]


def _weights(names: Sequence[str], values: Sequence[float], details: Sequence[str]) -> list[Weight]:
    largest = max(map(abs, values), default=1.0)
    return [
        Weight(name, value, round(100 * abs(value) / largest, 1), detail)
        for name, value, detail in zip(names, values, details, strict=True)
    ]
