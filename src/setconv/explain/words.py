"""What each word adds to the score of a class, by occlusion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataTypeError, ParameterError
from setconv.explain.scoring import Model, asked_classes, class_scores, plain_classes

Span = tuple[int, int]

_WORD = re.compile(r"\S+")
_CHARACTERS = 4_000_000  # of text that are scored at a time
# What is scored when nothing of a text is left: models may refuse an empty one.
_NOTHING = "."


@dataclass(frozen=True)
class WordContributions:
    """What the words of a text add to the score of a class.

    Attributes
    ----------
    class_ : label
        The class asked about.
    score : float
        Its score for the whole text.
    words : tuple of str
        The words; of a very long text, pieces of several words.
    spans : tuple of (int, int)
        Where each starts and ends in the text.
    values : float64 array of shape (n_words,)
        The score minus the score without the word: positive where it speaks for the class.
    words_per_piece : int
        1, but for a text of more words than were to be left out one by one.
    """

    class_: Any
    score: float
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    values: NDArray[np.float64]
    words_per_piece: int


def word_contributions(
    model: Model, text: str, class_: Any = None, *, max_pieces: int = 200
) -> WordContributions:
    """Measure by occlusion what each word adds to the score of a class.

    A word is what stands between white space. Each is left out in turn and the text is scored
    again. A text of more than ``max_pieces`` words is cut into at most that many pieces of equally
    many words, and pieces are left out instead.

    Parameters
    ----------
    model : fitted text classifier
        Its ``predictions`` takes a list of str.
    text : str
    class_ : label, optional
        The class whose score is explained, against the rest; by default the predicted one.
    max_pieces : int, default=200

    Returns
    -------
    WordContributions
    """
    return contributions_of_texts(model, [text], class_, max_pieces=max_pieces)[0]


def contributions_of_texts(
    model: Model,
    texts: Sequence[str],
    class_: Any = None,
    *,
    max_pieces: int = 200,
    scores: NDArray[np.float64] | None = None,
) -> list[WordContributions]:
    """Return `word_contributions` of several texts, scored together.

    ``scores`` are those of the class for the whole texts, where they are known.
    """
    if max_pieces < 1:
        raise ParameterError(f"max_pieces={max_pieces!r}: give at least 1.")
    for text in texts:
        if not isinstance(text, str):
            raise DataTypeError(
                f"text is a {type(text).__name__}: pass a string, or use feature_contributions "
                "for rows of features."
            )
    if not texts:
        return []
    texts = list(texts)
    pieces = [_pieces(text, max_pieces) for text in texts]
    asked = asked_classes(model, texts, len(texts), class_)
    classes = plain_classes(model)
    whole = scores
    if whole is None:
        whole = class_scores(model, texts)[np.arange(len(texts)), asked]
    owner = np.repeat(np.arange(len(texts)), [len(spans) for spans, _ in pieces])
    without = _scores_without(model, texts, [spans for spans, _ in pieces])
    values = whole[owner] - without[np.arange(len(owner)), asked[owner]]
    return [
        WordContributions(
            class_=classes[asked[number]],
            score=float(whole[number]),
            words=tuple(text[start:end] for start, end in spans),
            spans=tuple(spans),
            values=values[owner == number],
            words_per_piece=size,
        )
        for number, (text, (spans, size)) in enumerate(zip(texts, pieces, strict=True))
    ]


def _pieces(text: str, max_pieces: int) -> tuple[list[Span], int]:
    """Return the spans that are left out in turn, and how many words each has at most."""
    words = [found.span() for found in _WORD.finditer(text)]
    size = max(1, -(-len(words) // max_pieces))
    firsts = range(0, len(words), size)
    return [(words[i][0], words[min(i + size, len(words)) - 1][1]) for i in firsts], size


def _scores_without(
    model: Model, texts: Sequence[str], spans: Sequence[Sequence[Span]]
) -> NDArray[np.float64]:
    """Score each text without each of its spans, (n_spans, n_classes)."""
    scores = [np.empty((0, len(model.classes_)))]
    waiting: list[str] = []
    length = 0
    for text, of_text in zip(texts, spans, strict=True):
        for start, end in of_text:
            rest = text[:start] + text[end:]
            waiting.append(rest if rest.strip() else _NOTHING)
            length += len(rest)
            if length > _CHARACTERS:
                scores.append(class_scores(model, waiting))
                waiting, length = [], 0
    if waiting:
        scores.append(class_scores(model, waiting))
    return np.concatenate(scores)
