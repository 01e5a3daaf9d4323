"""Which rows the page shows, and what it says of them.

`read_source` checks rows that the user gave, and `gather` brings all into one form, `Sources`.
`compare_judged` and `compare_training` say how similar rows are to the representatives, and
`explain_representatives` what each of these stands for.
`find_mistakes` takes the surest wrong decisions, with what moved the score and the most similar
other row.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from setconv import explain
from setconv.errors import DataError
from setconv.explain import Codes, Flags, Floats
from setconv.messages import shown_day
from setconv.report.measure import Evaluation, encode_labels
from setconv.report.space import sample_rows, seen_by, to_representatives, with_all_members
from setconv.report.words import figure, readable
from setconv.sampling import row_keys, text_keys

_COMPARED = 10_000  # rows that are compared with representatives, or with a mistake
_CELLS = 20_000_000  # numbers that one explanation by features may cost
_PIECES = 24  # of a text, which are left out in turn; of a longer one a piece is several words
_SHOWN_TEXT = 320  # characters of a text


@dataclass(frozen=True)
class Shown:
    """A row on the page: what it is called, its class, its text if it has one, how similar it is.

    That is to another row, or to a representative.
    """

    name: str
    class_number: int
    text: str | None
    similarity: float


@dataclass(frozen=True)
class Source:
    """Rows that can be shown.

    Attributes
    ----------
    X : array-like or list of str
    codes : int64 array
        The true classes.
    texts : list of str or None
    names : sequence or None
        What rows are called; None: by their numbers, from 0.
    """

    X: Any
    codes: Codes
    texts: list[str] | None
    names: Sequence[Any] | None

    def take(self, rows: Codes) -> Any:
        """Return some of the rows as the model takes them."""
        return explain.take_rows(self.X, rows)

    def name(self, row: int) -> str:
        """Return what the page calls a row: a number is that of a row, a name says it all."""
        name = str(row) if self.names is None else readable(self.names[row], 60)
        return f"row {name}" if name.isdecimal() else name

    def show(self, row: int, similarity: float) -> Shown:
        """Return what the page shows of a row beside another, or beside a representative."""
        text = None if self.texts is None else readable(self.texts[row], _SHOWN_TEXT)
        return Shown(self.name(row), int(self.codes[row]), text, similarity)


@dataclass(frozen=True)
class Sources:
    """The model, its evaluation, the rows that were given and those that are searched.

    Attributes
    ----------
    model : fitted classifier
    evaluation : Evaluation
    here : Source
        The rows that were given; those that are judged are among them.
    there : Source
        Where similar rows are sought: training rows if there are any, else here.
    searched : int64 array
        Which rows of ``there`` are.
    feature_names : tuple of str
        Empty if the features mean nothing by themselves, as embeddings of texts do.
    usual : float64 array of shape (n_features,)
        The medians of the searched rows.
    dates : frozenset of str
        Features that are days since 1970-01-01.
    """

    model: Any
    evaluation: Evaluation
    here: Source
    there: Source
    searched: Codes
    feature_names: tuple[str, ...]
    usual: Floats
    dates: frozenset[str]

    def value(self, column: int, value: float) -> str:
        """Return what the page shows of a feature's value."""
        dated = self.feature_names[column] in self.dates
        return shown_day(value) if dated else figure(value, ".4g")

    @cached_property
    def reads_texts(self) -> bool:
        """Whether the model takes texts."""
        return are_texts(self.here.X)

    @property
    def gave_training(self) -> bool:
        """Whether training rows were given beside those that are judged."""
        return self.there is not self.here

    def explainable(self, wanted: int) -> int:
        """Return how many rows can be explained by their features at a bearable cost."""
        n_features = len(self.feature_names)
        return min(wanted, _CELLS // n_features**2) if n_features else 0

    def barred(self, rows: Codes) -> Flags:
        """Return which searched rows a row must not be likened to, (n_rows, n_searched).

        That is the row itself, and of training rows all copies of it.
        """
        if self.gave_training:
            return np.zeros((len(rows), len(self.searched)), dtype=np.bool_)
        if not self.evaluation.out_of_fold:
            return np.asarray(rows[:, None] == self.searched)
        both = self.here.take(np.r_[rows, self.searched])
        keys = text_keys(both) if self.reads_texts else row_keys(np.asarray(both, dtype=np.float64))
        return np.asarray(keys[: len(rows), None] == keys[None, len(rows) :])


def read_training(
    train: tuple[Any, Any], labels: tuple[Any, ...], names: Sequence[Any] | None
) -> Source:
    """Return the training rows that the user gave."""
    try:
        X, y = train
    except (TypeError, ValueError) as error:
        raise DataError("train: pass a pair, (X_train, y_train).", parameter="train") from error
    codes = encode_labels(y, explain.count_rows(X), labels, "train")
    return read_source(X, codes, None, names, "train_row_names")


def read_source(
    X: Any, codes: Codes, texts: Sequence[str] | None, names: Sequence[Any] | None, what: str
) -> Source:
    """Return rows with their texts, which may be the rows themselves, and their names.

    The user gave these by the parameter ``what``.
    """
    if texts is None and are_texts(X):
        texts = list(X)
    for parameter, given in (("texts", texts), (what, names)):
        if given is not None and len(given) != len(codes):
            raise DataError(
                f"{parameter} has {len(given)} entries but there are {len(codes)} rows: pass one "
                "for each row.",
                parameter=parameter,
            )
    return Source(X, codes, None if texts is None else list(texts), names)


def gather(
    model: Any,
    evaluation: Evaluation,
    here: Source,
    there: Source,
    feature_names: Sequence[str] | None,
    dates: Collection[str],
    seed: int,
) -> Sources:
    """Bring the rows that were given and those that are searched into one form."""
    searched = sample_rows(there.codes, _COMPARED, seed)
    names: tuple[str, ...] = ()
    usual = np.empty(0)
    if here.texts is None:
        usual = np.median(np.asarray(there.take(searched), dtype=np.float64), axis=0)
        names = explain.name_features(model, here.X, len(usual), feature_names)
    return Sources(model, evaluation, here, there, searched, names, usual, frozenset(dates))


def are_texts(X: Any) -> bool:
    """Whether the rows are texts: a list or column of strings."""
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "schema") or not explain.count_rows(X):
        return False
    return isinstance(next(iter(X)), str)


@dataclass(frozen=True)
class Compared:
    """Rows and how similar they are to the representative of each class.

    Attributes
    ----------
    source : Source
        Where the rows are.
    rows : int64 array of shape (n_compared,)
        Which of its rows they are.
    places : int64 array of shape (n_compared,) or None
        Where they stand among the rows that are judged; None for other rows.
    similarities : float64 array of shape (n_compared, n_classes)
    """

    source: Source
    rows: Codes
    places: Codes | None
    similarities: Floats

    @property
    def codes(self) -> Codes:
        """The true classes."""
        return self.source.codes[self.rows]


def compare_judged(sources: Sources, seed: int) -> Compared:
    """Compare a sample of the judged rows with the representatives."""
    evaluation = sources.evaluation
    places = sample_rows(evaluation.truth, _COMPARED, seed)
    rows = evaluation.rows[places]
    X, members = sources.here.take(rows), evaluation.members_of(places)
    return Compared(sources.here, rows, places, to_representatives(sources.model, X, members))


def compare_training(sources: Sources) -> Compared:
    """Compare the training rows that were given with the representatives."""
    there, rows = sources.there, sources.searched
    return Compared(there, rows, None, to_representatives(sources.model, there.take(rows), None))


class Weight(NamedTuple):
    """A word or feature and what it adds.

    Attributes
    ----------
    name : str
    value : float
        The mean contribution to the score.
    detail : str
        In how many texts, or which values.
    column : int or None
        Of a feature: where it stands.
    """

    name: str
    value: float
    detail: str
    column: int | None = None


class Piece(NamedTuple):
    """Part of a text, with a level from -3 (speaks against the class) to 3 (speaks for it)."""

    text: str
    level: int = 0


@dataclass(frozen=True)
class Mistake:
    """A wrong decision.

    Attributes
    ----------
    place : int
        Among the rows that are judged.
    margin : float
        How far the decision is from the other one, in units of the score.
    text : list of Piece or None
        Words marked by what they add to the score of the predicted class.
    weights : list of Weight
        The features that add most to it.
    nearest : Shown or None
        The most similar other row of those searched.
    """

    place: int
    margin: float
    text: list[Piece] | None
    weights: list[Weight]
    nearest: Shown | None


_MISTAKES = 10
_MISTAKE_FEATURES = 4


def find_mistakes(sources: Sources) -> list[Mistake]:
    """Return the mistakes with the largest margins, of every kind some."""
    places, margins = _surest(sources.evaluation)
    if not len(places):
        return []
    texts, weights = _mistake_texts(sources, places), _mistake_features(sources, places)
    nearest = _nearest(sources, places)
    return list(map(Mistake, places.tolist(), margins.tolist(), texts, weights, nearest))


def _surest(evaluation: Evaluation) -> tuple[Codes, Floats]:
    """Return places and margins of mistakes: half of them rows of the main class, if there are."""
    wrong = np.flatnonzero(evaluation.truth != evaluation.predicted)
    truth, predicted = evaluation.truth[wrong], evaluation.predicted[wrong]
    margins = evaluation.values[wrong, predicted]
    if not evaluation.binary:
        margins = margins - evaluation.values[wrong, truth]
    order = np.argsort(-margins, kind="stable")
    missed = truth[order] == evaluation.main
    first, second = order[missed], order[~missed]
    n_first = min(len(first), max(_MISTAKES // 2, _MISTAKES - len(second)))
    chosen = np.r_[first[:n_first], second[: _MISTAKES - n_first]]
    return wrong[chosen], margins[chosen]


def _nearest(sources: Sources, places: Codes) -> list[Shown | None]:
    """Return the most similar row for each, which is not the row itself."""
    rows, there = sources.evaluation.rows[places], sources.there
    members = sources.evaluation.members_of(places)
    model = with_all_members(sources.model, members)
    queries = seen_by(explain.unit_vectors(model, sources.here.take(rows)), members)
    blocks = explain.unit_blocks(model, there.take(sources.searched))
    found = explain.search(queries, blocks, 1, sources.barred(rows))
    best, similarities = sources.searched[found.indices[:, 0]], found.similarities[:, 0]
    return [
        there.show(row, similarity) if np.isfinite(similarity) else None
        for row, similarity in zip(best.tolist(), similarities.tolist(), strict=True)
    ]


def _mistake_texts(sources: Sources, places: Codes) -> list[list[Piece] | None]:
    """Return the text of each mistake, its words marked if the model reads them."""
    if sources.here.texts is None:
        return [None] * len(places)
    texts = [sources.here.texts[row] for row in sources.evaluation.rows[places].tolist()]
    if not sources.reads_texts:
        return [[Piece(readable(text, _SHOWN_TEXT))] for text in texts]
    asked = sources.evaluation.predicted[places]
    return list(map(_marked_pieces, texts, explain_words(sources, texts, asked, places)))


_LEVELS = 3


def _marked_pieces(text: str, of: explain.WordContributions) -> list[Piece]:
    """Return a text, cut to what is shown, with its words marked."""
    largest = max(np.abs(of.values).max(initial=0.0), 1e-9)
    levels = np.round(_LEVELS * of.values / largest).astype(int).tolist()
    pieces: list[Piece] = []
    for (start, end), level in zip(of.spans, levels, strict=True):
        if start >= _SHOWN_TEXT:
            pieces.append(Piece("…"))
            break
        word = readable(text[start:end], max(_SHOWN_TEXT - start, 12))
        if pieces and pieces[-1].level == level:
            pieces[-1] = Piece(f"{pieces[-1].text} {word}", level)
        else:
            pieces.append(Piece(word, level))
    return pieces or [Piece(readable(text, _SHOWN_TEXT))]


def _mistake_features(sources: Sources, places: Codes) -> list[list[Weight]]:
    """Return the strongest features of each mistake; of those that cost too much, none."""
    weights: list[list[Weight]] = [[] for _ in places]
    explained = places[: sources.explainable(len(places))]
    if len(explained):
        X = sources.here.take(sources.evaluation.rows[explained])
        asked = sources.evaluation.predicted[explained]
        found = _explain_features(sources, X, asked, explained)
        for i, row in enumerate(np.asarray(X, dtype=np.float64)):
            weights[i] = _strongest_features(sources, found[[i]], row[None], _MISTAKE_FEATURES)
    return weights


@dataclass(frozen=True)
class ClassPortrait:
    """What a representative stands for.

    Attributes
    ----------
    class_number : int
    nearest : list of Shown
    weights : list of Weight
        The words or features that add most to the score of the class in its rows nearby.
    n_looked_at, n_of_class : int
        The nearest rows looked at, and how many of them are of the class.
    n_explained : int
        Rows that the weights come from.
    """

    class_number: int
    nearest: list[Shown]
    weights: list[Weight]
    n_looked_at: int
    n_of_class: int
    n_explained: int


_PORTRAITS = 6  # the rarest classes
_NEIGHBOURS = 60  # nearest rows, from which those shown and explained are taken
_NEAREST = 5  # that are shown
_PORTRAIT_TEXTS = 16  # whose words are left out in turn, over all classes
_PORTRAIT_ROWS = 20  # whose features are, for a class
_PORTRAIT_WEIGHTS = 10
_PORTRAIT_VALUES = 4  # features of a row


def explain_representatives(sources: Sources, compared: Compared) -> list[ClassPortrait]:
    """Return what the representatives of the rarest classes stand for."""
    classes = sources.evaluation.minority[:_PORTRAITS]
    n_texts = max(4, _PORTRAIT_TEXTS // len(classes))
    portraits = []
    for c in classes:
        near = np.argsort(-compared.similarities[:, c], kind="stable")[:_NEIGHBOURS]
        of_class = near[compared.codes[near] == c]
        if sources.reads_texts:
            chosen = _short_texts(of_class, compared)[:n_texts]
        else:
            chosen = of_class[: sources.explainable(_PORTRAIT_ROWS)]
        weights = _portrait_weights(sources, compared, c, chosen)
        shown = _different_texts(near, compared)[:_NEAREST]
        nearest = [_show_near(sources, compared, i, c, weights) for i in shown]
        sizes = len(near), len(of_class), len(chosen)
        portraits.append(ClassPortrait(c, nearest, weights, *sizes))
    return portraits


def _different_texts(near: Codes, compared: Compared) -> Codes:
    """Return those of the nearest rows of which no two have the same text."""
    texts = compared.source.texts
    if texts is None:
        return near
    seen: dict[str, int] = {}
    for i in near.tolist():
        seen.setdefault(texts[compared.rows[i]].strip().lower(), i)
    return np.array(list(seen.values()), dtype=np.int64)


def _short_texts(of_class: Codes, compared: Compared) -> Codes:
    """Return rows of different texts, if there are any then short ones: every word is tried."""
    texts = compared.source.texts or []
    different = _different_texts(of_class, compared)
    rows = compared.rows[different].tolist()
    n_words = np.array([len(texts[row].split(maxsplit=_PIECES)) for row in rows])
    short = different[n_words <= _PIECES]
    return short if len(short) else different


def _portrait_weights(sources: Sources, compared: Compared, c: int, chosen: Codes) -> list[Weight]:
    """Return the words or features that add most to the score of a class in the chosen rows."""
    if not len(chosen):
        return []
    places = None if compared.places is None else compared.places[chosen]
    X, asked = compared.source.take(compared.rows[chosen]), np.full(len(chosen), c)
    if sources.reads_texts:
        return _strongest_words(explain_words(sources, X, asked, places))
    contributions = _explain_features(sources, X, asked, places)
    rows = np.asarray(X, dtype=np.float64)
    return _strongest_features(sources, contributions, rows, _PORTRAIT_WEIGHTS)


def _show_near(
    sources: Sources, compared: Compared, i: int, c: int, weights: list[Weight]
) -> Shown:
    """Return a row with its text, or else with the features that count most for the class."""
    row = int(compared.rows[i])
    shown = compared.source.show(row, float(compared.similarities[i, c]))
    columns = [one.column for one in weights[:_PORTRAIT_VALUES] if one.column is not None]
    if not columns:
        return shown
    values = np.asarray(compared.source.take(np.array([row])), dtype=np.float64)[0]
    names = sources.feature_names
    said = [f"{readable(names[i], 40)} = {sources.value(i, values[i])}" for i in columns]
    return replace(shown, text=" · ".join(said))


_EDGES = re.compile(r"^\W+|\W+$")  # of a word: what is no letter or digit


def _strongest_words(found: Sequence[explain.WordContributions]) -> list[Weight]:
    """Return the words that add most to the score, over all texts together."""
    total: dict[str, float] = defaultdict(float)
    n_texts = Counter[str]()
    for of in found:
        if of.words_per_piece == 1:
            words = [_EDGES.sub("", word).lower() for word in of.words]
            n_texts.update(set(words))
            for word, value in zip(words, of.values.tolist(), strict=True):
                total[word] += value
    total.pop("", None)  # what has no letter or digit
    ranked = sorted(total, key=lambda word: (-total[word], word))[:_PORTRAIT_WEIGHTS]
    details = [f"in {n_texts[word]} of {len(found)} texts" for word in ranked]
    return [
        Weight(readable(word, 30), total[word] / len(found), detail)
        for word, detail in zip(ranked, details, strict=True)
        if total[word] > 0
    ]


def _strongest_features(
    sources: Sources, contributions: Floats, rows: Floats, limit: int
) -> list[Weight]:
    """Return the features that change the score most, on average over the rows."""
    mean, here = contributions.mean(axis=0), np.median(rows, axis=0)
    weights = []
    for i in np.argsort(-np.abs(mean), kind="stable")[:limit].tolist():
        name, usual = readable(sources.feature_names[i], 40), sources.value(i, sources.usual[i])
        detail = f"{sources.value(i, here[i])}, usually {usual}"
        weights.append(Weight(name, float(mean[i]), detail, column=i))
    return [one for one in weights if one.value]


def explain_words(
    sources: Sources, texts: Sequence[str], asked: Codes, places: Codes | None
) -> list[explain.WordContributions]:
    """Return what the words of each text add to the score of the class asked about.

    ``places`` are those of the texts among the rows that are judged; None for other texts.
    """
    found: dict[int, explain.WordContributions] = {}
    for who, here, part, scores in _askers(sources, texts, asked, places):
        said = explain.occlude_words(who, part, asked[here], scores, max_pieces=_PIECES)
        found.update(zip(here.tolist(), said, strict=True))
    return [found[number] for number in range(len(found))]


def _explain_features(sources: Sources, X: Any, asked: Codes, places: Codes | None) -> Floats:
    """Return what each feature adds to the score of the class asked about."""
    values = np.empty((len(asked), len(sources.usual)))
    for who, here, part, scores in _askers(sources, X, asked, places):
        values[here] = explain.occlude_features(who, part, sources.usual, asked[here], scores)
    return values


def _askers(
    sources: Sources, X: Any, asked: Codes, places: Codes | None
) -> Iterator[tuple[Any, Codes, Any, Floats | None]]:
    """Yield who is asked about which rows, these, and the scores that are known of them.

    Of rows that are judged they are, and of training rows the members are asked that left them out.
    """
    evaluation = sources.evaluation
    members = evaluation.members_of(places)
    scores = None if places is None else evaluation.scores[places, asked]
    if members is None or scores is None:
        yield sources.model, np.arange(len(asked)), X, scores
        return
    kinds, number = np.unique(members, axis=1, return_inverse=True)
    for kind, of in enumerate(kinds.T):
        here = np.flatnonzero(number.ravel() == kind)
        yield sources.model._only(of), here, explain.take_rows(X, here), scores[here]
