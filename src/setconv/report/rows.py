"""Which rows the page shows, and what it says of them.

`gather` brings the rows that the user gave into one form, `Sources`. Those that are judged and
those of training are compared with the representatives (`compare_judged`, `compare_training`): from
that come the map of the learned space (`draw_map`) and what each representative stands for
(`explain_representatives`). `find_mistakes` takes the surest wrong decisions, with what moved the
score and the most similar other row.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from setconv.errors import DataError
from setconv.explain import (
    WordContributions,
    are_texts,
    contributions_of_texts,
    count_rows,
    feature_contributions,
    name_features,
    plain_classes,
    representative_directions,
    representative_points,
    take_rows,
    to_matrix,
    unit_blocks,
    unit_vectors,
)
from setconv.report.measure import Codes, Evaluation, Flags, Floats, encode
from setconv.report.words import number_of, readable
from setconv.sampling import row_keys, text_keys

_COMPARED = 10_000  # rows that are compared with representatives, or with a mistake
_CELLS = 20_000_000  # numbers that one explanation by features may cost
_PIECES = 24  # of a text, which are left out in turn; of a longer one a piece is several words
_SHOWN_TEXT = 320  # characters of a text


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
        return take_rows(self.X, rows)

    def name(self, row: int) -> str:
        """Return what the page calls a row: a number is that of a row, a name says it all."""
        name = str(row) if self.names is None else readable(self.names[row], 60)
        return f"row {name}" if name.isdecimal() else name


@dataclass(frozen=True)
class Sources:
    """The rows that were given and those that are searched.

    Attributes
    ----------
    here : Source
        The rows that were given; those that are judged are among them.
    there : Source
        Where similar rows are sought: training rows if there are any, else here.
    searched : int64 array
        Which rows of ``there`` are.
    gave_training : bool
        Whether training rows were given beside those that are judged.
    reads_texts : bool
        Whether the model takes texts.
    feature_names : tuple of str or None
        None if the features mean nothing by themselves, as embeddings of texts do.
    background : float64 array of shape (n_features,) or None
        The medians of the searched rows.
    """

    here: Source
    there: Source
    searched: Codes
    gave_training: bool
    reads_texts: bool
    feature_names: tuple[str, ...] | None
    background: Floats | None

    def explainable(self, wanted: int) -> int:
        """Return how many rows can be explained by their features at a bearable cost."""
        if self.feature_names is None:
            return 0
        return min(wanted, _CELLS // len(self.feature_names) ** 2)

    def barred(self, rows: Codes, *, copies: bool) -> Flags:
        """Return which searched rows a row must not be likened to, (n_rows, n_searched).

        That is the row itself, and where they are asked for all copies of it.
        """
        if self.there.X is not self.here.X:
            return np.zeros((len(rows), len(self.searched)), dtype=np.bool_)
        if not copies:
            return np.asarray(rows[:, None] == self.searched)
        both = self.here.take(np.r_[rows, self.searched])
        keys = text_keys(both) if self.reads_texts else row_keys(to_matrix(both))
        return np.asarray(keys[: len(rows), None] == keys[None, len(rows) :])


def gather(
    model: Any,
    X: Any,
    evaluation: Evaluation,
    *,
    texts: Sequence[str] | None,
    feature_names: Sequence[str] | None,
    train: tuple[Any, Any] | None,
    row_names: Sequence[Any] | None,
    train_row_names: Sequence[Any] | None,
    seed: int,
) -> Sources:
    """Check what the user gave and bring it into one form."""
    reads_texts = are_texts(X)
    shown = list(X) if texts is None and reads_texts else texts
    for what, given in (("texts", shown), ("row_names", row_names)):
        _check_length(what, given, "X", len(evaluation.codes))
    here = Source(X, evaluation.codes, None if shown is None else list(shown), row_names)
    there = here
    if train is not None and not evaluation.out_of_fold:
        there = _training_rows(train, evaluation, train_row_names)
    searched = sample_rows(there.codes, _COMPARED, seed)
    names, background = None, None
    if shown is None:
        matrix = to_matrix(there.take(searched))
        names = name_features(model, X, matrix.shape[1], feature_names)
        background = np.median(matrix, axis=0)
    return Sources(
        here=here,
        there=there,
        searched=searched,
        gave_training=there is not here,
        reads_texts=reads_texts,
        feature_names=names,
        background=background,
    )


def _training_rows(
    train: tuple[Any, Any], evaluation: Evaluation, names: Sequence[Any] | None
) -> Source:
    try:
        X, y = train
    except (TypeError, ValueError) as error:
        raise DataError("train: pass a pair, (X_train, y_train).") from error
    codes = encode(y, evaluation.labels, "y_train")
    if not len(codes) or len(codes) != count_rows(X):
        raise DataError(
            f"train has {count_rows(X)} rows and {len(codes)} labels: pass as many labels as "
            "rows, and at least one."
        )
    _check_length("train_row_names", names, "train", len(codes))
    return Source(X, codes, list(X) if are_texts(X) else None, names)


def _check_length(what: str, given: Sequence[Any] | None, where: str, n_rows: int) -> None:
    if given is not None and len(given) != n_rows:
        raise DataError(
            f"{what} has {len(given)} entries but {where} has {n_rows} rows: pass one for each row."
        )


def sample_rows(codes: Codes, limit: int, seed: int) -> Codes:
    """Return at most about ``limit`` row numbers, sorted; all rows if there are no more.

    Classes come in their shares, but the rare ones have up to half of an equal share.
    """
    if len(codes) <= limit:
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    counts = np.bincount(codes)
    floor = max(1, limit // (2 * len(counts)))
    wanted = np.minimum(counts, np.maximum(floor, counts * limit // len(codes)))
    largest = int(np.argmax(counts))
    wanted[largest] = max(floor, limit - wanted.sum() + wanted[largest])
    parts = [
        rng.choice(np.flatnonzero(codes == code), size=number, replace=False)
        for code, number in enumerate(wanted.tolist())
    ]
    return np.sort(np.concatenate(parts))


@dataclass(frozen=True)
class Compared:
    """Rows and how similar they are to the representative of each class.

    Attributes
    ----------
    source : Source
        Where the rows are.
    rows : int64 array of shape (n_compared,)
        Which of its rows they are.
    similarities : float64 array of shape (n_compared, n_classes)
    places : int64 array of shape (n_compared,) or None
        Where they stand among the rows that are judged; None for other rows.
    """

    source: Source
    rows: Codes
    similarities: Floats
    places: Codes | None

    @property
    def codes(self) -> Codes:
        """The true classes."""
        return self.source.codes[self.rows]


def compare_judged(model: Any, evaluation: Evaluation, sources: Sources, seed: int) -> Compared:
    """Compare a sample of the judged rows with the representatives."""
    places = sample_rows(evaluation.truth, _COMPARED, seed)
    rows = evaluation.rows[places]
    found = _to_classes(model, sources.here.take(rows), evaluation.members_of(places))
    return Compared(sources.here, rows, found, places)


def compare_training(model: Any, sources: Sources) -> Compared:
    """Compare the training rows that were given with the representatives."""
    rows = sources.searched
    return Compared(sources.there, rows, _to_classes(model, sources.there.take(rows), None), None)


def _to_classes(model: Any, X: Any, members: Flags | None) -> Floats:
    """Return the mean cosine of rows with each representative, in the head of its class."""
    directions = representative_directions(model).astype(np.float64)
    parts = [
        _seen_by(model, vectors, None if members is None else members[:, part]) @ directions.T
        for part, vectors in unit_blocks(model, X)
    ]
    return np.concatenate(parts)


def _seen_by(model: Any, vectors: Any, members: Flags | None) -> Floats:
    """Return vectors whose dot products are mean cosines over the members that count for a row."""
    if members is None:
        return np.asarray(vectors, dtype=np.float64)
    counted = members / members.mean(axis=0)
    n_members = len(model.representatives_)
    by_member = vectors.reshape(len(vectors), n_members, -1) * counted.T[:, :, None]
    return np.asarray(by_member.reshape(len(vectors), -1), dtype=np.float64)


_MAP_ROWS = 1500


@dataclass(frozen=True)
class LearnedMap:
    """Rows and representatives in two dimensions.

    Attributes
    ----------
    points : float64 array of shape (n_shown, 2)
        Of two classes: the similarity to the main one and to the other.
    classes : int64 array of shape (n_shown,)
        The true classes of the points.
    representatives : float64 array of shape (n_classes, 2)
    explained : float or None
        Of more classes: the share of the variance that the two dimensions show.
    """

    points: Floats
    classes: Codes
    representatives: Floats
    explained: float | None


def draw_map(model: Any, evaluation: Evaluation, compared: Compared, seed: int) -> LearnedMap:
    """Lay a sample of the compared rows, and the representatives, on paper.

    Two classes have two similarities; of more, the first two principal components are shown.
    """
    shown = sample_rows(compared.codes, _MAP_ROWS, seed)
    rows, codes = compared.similarities[shown], compared.codes[shown]
    points, directions = representative_points(model), representative_directions(model)
    stars = points.astype(np.float64) @ directions.T.astype(np.float64)
    if evaluation.binary:
        axes = [evaluation.main, 1 - evaluation.main]
        return LearnedMap(rows[:, axes], codes, stars[:, axes], None)
    pca = PCA(2, svd_solver="full")
    flat = pca.fit_transform(np.vstack([rows, stars]))
    explained = float(np.nan_to_num(pca.explained_variance_ratio_).sum())
    return LearnedMap(flat[: len(rows)], codes, flat[len(rows) :], explained)


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


@dataclass(frozen=True)
class Shown:
    """A row on the page: what it is called, its class, and its text if it has one."""

    name: str
    class_name: str
    text: list[Piece] | None
    similarity: float


@dataclass(frozen=True)
class Mistake:
    """A wrong decision.

    Attributes
    ----------
    row : int
        Among the rows that were given.
    name : str
        What the row is called.
    truth, predicted : str
    probability : float
        Of the predicted class.
    margin : float
        How far the decision is from the other one, in units of the score.
    text : list of Piece or None
        Words marked by what they add to the score of the predicted class.
    features : list of Weight
        The features that add most to it.
    nearest : Shown or None
        The most similar other row of those searched.
    """

    row: int
    name: str
    truth: str
    predicted: str
    probability: float
    margin: float
    text: list[Piece] | None
    features: list[Weight]
    nearest: Shown | None


_MISTAKES = 10
_MISTAKE_FEATURES = 4


def find_mistakes(model: Any, evaluation: Evaluation, sources: Sources) -> list[Mistake]:
    """Return the mistakes with the largest margins, of every kind some."""
    places, margins = _surest(evaluation)
    if not len(places):
        return []
    here, rows = sources.here, evaluation.rows[places]
    question = ask(evaluation, here.take(rows), evaluation.predicted[places], places)
    nearest = _nearest(model, question, rows, evaluation, sources)
    texts = _mistake_texts(model, question, rows, sources)
    features = _mistake_features(model, evaluation, places, sources)
    names, truth, predicted = evaluation.names, evaluation.truth, evaluation.predicted
    return [
        Mistake(
            row=row,
            name=here.name(row),
            truth=names[truth[place]],
            predicted=names[predicted[place]],
            probability=float(evaluation.probabilities[place, predicted[place]]),
            margin=float(margins[i]),
            text=texts[i],
            features=features[i],
            nearest=nearest[i],
        )
        for i, (row, place) in enumerate(zip(rows.tolist(), places.tolist(), strict=True))
    ]


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
    half = _MISTAKES // 2
    n_first = min(len(first), max(half, _MISTAKES - len(second)))
    chosen = np.r_[first[:n_first], second[: _MISTAKES - n_first]]
    return wrong[chosen], margins[chosen]


def _nearest(
    model: Any, question: Question, rows: Codes, evaluation: Evaluation, sources: Sources
) -> list[Shown | None]:
    """Return the most similar row for each, which is not the row itself."""
    barred = sources.barred(rows, copies=evaluation.out_of_fold)
    there, searched = sources.there, sources.searched
    found, similarities = nearest_other(
        model, question.X, question.members, there.take(searched), barred
    )
    return [
        None if one < 0 else _show(there, evaluation, int(searched[one]), similarity)
        for one, similarity in zip(found.tolist(), similarities.tolist(), strict=True)
    ]


def nearest_other(
    model: Any, X: Any, members: Flags | None, searched: Any, barred: Flags
) -> tuple[Codes, Floats]:
    """Return for each row the most similar of others, -1 if all are barred, and the similarity.

    Parameters
    ----------
    model : fitted classifier
    X : rows
    members : bool array of shape (n_members, n_rows) or None
        The members that compare a row; None: all.
    searched : rows
    barred : bool array of shape (n_rows, n_searched)
        Which are not to be found.
    """
    queries = _seen_by(model, unit_vectors(model, X).astype(np.float64), members)
    found = np.empty((count_rows(X), count_rows(searched)))
    for part, vectors in unit_blocks(model, searched):
        found[:, part] = queries @ vectors.T
    found[barred] = -np.inf
    best = np.argmax(found, axis=1)
    similarities = found[np.arange(len(found)), best]
    return np.where(np.isfinite(similarities), best, -1), similarities


def _mistake_texts(
    model: Any, question: Question, rows: Codes, sources: Sources
) -> list[list[Piece] | None]:
    """Return the text of each mistake, its words marked if the model reads them."""
    if sources.here.texts is None:
        return [None] * len(rows)
    texts = [sources.here.texts[row] for row in rows.tolist()]
    if not sources.reads_texts:
        return [_plain_pieces(text) for text in texts]
    return list(map(_marked_pieces, texts, explain_words(model, question)))


_LEVELS = 3


def _marked_pieces(text: str, of: WordContributions) -> list[Piece]:
    """Return a text, cut to what is shown, with its words marked."""
    largest = max(np.abs(of.values).max(initial=0.0), 1e-9)
    levels = np.round(_LEVELS * of.values / largest).astype(int).tolist()
    pieces: list[Piece] = []
    for (start, end), level in zip(of.spans, levels, strict=True):
        if start >= _SHOWN_TEXT:
            pieces.append(Piece("…", 0))
            break
        word = readable(text[start:end], max(_SHOWN_TEXT - start, 12))
        if pieces and pieces[-1].level == level:
            pieces[-1] = Piece(f"{pieces[-1].text} {word}", level)
        else:
            pieces.append(Piece(word, level))
    return pieces or _plain_pieces(text)


def _mistake_features(
    model: Any, evaluation: Evaluation, places: Codes, sources: Sources
) -> list[list[Weight]]:
    """Return the strongest features of each mistake; of those that cost too much, none."""
    weights: list[list[Weight]] = [[] for _ in places]
    explained = places[: sources.explainable(len(places))]
    if not len(explained):
        return weights
    X = sources.here.take(evaluation.rows[explained])
    question = ask(evaluation, X, evaluation.predicted[explained], explained)
    contributions, rows = _explain_features(model, question, sources), to_matrix(X)
    for i in range(len(explained)):
        one = slice(i, i + 1)
        weights[i] = _strongest_features(sources, contributions[one], rows[one], _MISTAKE_FEATURES)
    return weights


@dataclass(frozen=True)
class ClassPortrait:
    """What a representative stands for.

    Attributes
    ----------
    class_number : int
    nearest : list of Shown
    n_looked_at, n_of_class : int
        The nearest rows looked at, and how many of them are of the class.
    weights : list of Weight
        The words or features that add most to the score of the class in its rows nearby.
    n_explained : int
        Rows that the weights come from.
    """

    class_number: int
    nearest: list[Shown]
    n_looked_at: int
    n_of_class: int
    weights: list[Weight]
    n_explained: int


_PORTRAITS = 6  # the rarest classes
_NEIGHBOURS = 60  # nearest rows, from which those shown and explained are taken
_NEAREST = 5  # that are shown
_PORTRAIT_TEXTS = 16  # whose words are left out in turn, over all classes
_PORTRAIT_ROWS = 20  # whose features are, for a class
_PORTRAIT_WEIGHTS = 10
_PORTRAIT_VALUES = 4  # features of a row


def explain_representatives(
    model: Any, evaluation: Evaluation, sources: Sources, compared: Compared
) -> list[ClassPortrait]:
    """Return what the representatives of the rarest classes stand for."""
    classes = evaluation.minority[:_PORTRAITS]
    n_texts = max(4, _PORTRAIT_TEXTS // len(classes))
    portraits = []
    for c in classes:
        near = np.argsort(-compared.similarities[:, c], kind="stable")[:_NEIGHBOURS]
        of_class = near[compared.codes[near] == c]
        if sources.reads_texts and compared.source.texts is not None:
            chosen = _short_texts(of_class, compared)[:n_texts]
        else:
            chosen = of_class[: sources.explainable(_PORTRAIT_ROWS)]
        weights = _portrait_weights(model, evaluation, c, chosen, sources, compared)
        portraits.append(
            ClassPortrait(
                class_number=c,
                nearest=[
                    _show_near(evaluation, sources, compared, i, c, weights)
                    for i in _different_texts(near, compared)
                ],
                n_looked_at=len(near),
                n_of_class=len(of_class),
                weights=weights,
                n_explained=len(chosen),
            )
        )
    return portraits


def _short_texts(of_class: Codes, compared: Compared) -> Codes:
    """Return rows of different texts, if there are any then short ones: every word is tried."""
    texts = compared.source.texts
    assert texts is not None
    seen: dict[str, int] = {}
    for i in of_class.tolist():
        seen.setdefault(texts[compared.rows[i]], i)
    short = [i for text, i in seen.items() if len(text.split(maxsplit=_PIECES)) <= _PIECES]
    return np.array(short or list(seen.values()), dtype=np.int64)


def _portrait_weights(
    model: Any,
    evaluation: Evaluation,
    c: int,
    chosen: Codes,
    sources: Sources,
    compared: Compared,
) -> list[Weight]:
    """Return the words or features that add most to the score of a class in the chosen rows."""
    if not len(chosen):
        return []
    places = None if compared.places is None else compared.places[chosen]
    X = compared.source.take(compared.rows[chosen])
    question = ask(evaluation, X, np.full(len(chosen), c), places)
    if sources.reads_texts:
        return _strongest_words(explain_words(model, question), _PORTRAIT_WEIGHTS)
    contributions = _explain_features(model, question, sources)
    return _strongest_features(sources, contributions, to_matrix(X), _PORTRAIT_WEIGHTS)


_EDGES = re.compile(r"^\W+|\W+$")  # of a word: what is no letter or digit


def _strongest_words(found: Sequence[WordContributions], limit: int) -> list[Weight]:
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
    return [
        Weight(readable(word, 30), value, width, f"in {len(texts[word])} of {len(found)} texts")
        for word, value, width in zip(chosen, values, _bar_widths(values), strict=True)
    ]


def _different_texts(near: Codes, compared: Compared) -> list[int]:
    """Return the first of the nearest rows of which no two have the same text."""
    texts = compared.source.texts
    if texts is None:
        return [int(i) for i in near[:_NEAREST]]
    seen: dict[str, int] = {}
    for i in near.tolist():
        seen.setdefault(texts[compared.rows[i]].strip().lower(), i)
    return list(seen.values())[:_NEAREST]


def _show_near(
    evaluation: Evaluation,
    sources: Sources,
    compared: Compared,
    i: int,
    c: int,
    weights: list[Weight],
) -> Shown:
    """Return a row with its text, or else with the features that count most for the class."""
    row = int(compared.rows[i])
    shown = _show(compared.source, evaluation, row, compared.similarities[i, c])
    columns = [one.column for one in weights[:_PORTRAIT_VALUES] if one.column is not None]
    names = sources.feature_names
    if not columns or names is None:
        return shown
    values = to_matrix(compared.source.take(np.array([row])))[0]
    text = " · ".join(f"{readable(names[i], 40)} = {number_of(values[i])}" for i in columns)
    return replace(shown, text=[Piece(text, 0)])


def _show(source: Source, evaluation: Evaluation, row: int, similarity: float) -> Shown:
    """Return what the page shows of a row beside another, or beside a representative."""
    text = None if source.texts is None else _plain_pieces(source.texts[row])
    return Shown(source.name(row), evaluation.names[source.codes[row]], text, float(similarity))


def _plain_pieces(text: str) -> list[Piece]:
    """Return a text without marks, cut to what is shown."""
    return [Piece(readable(text, _SHOWN_TEXT), 0)]


def _strongest_features(
    sources: Sources, contributions: Floats, rows: Floats, limit: int
) -> list[Weight]:
    """Return the features that change the score most, on average over the rows."""
    assert sources.feature_names is not None
    assert sources.background is not None
    names, usual, here = sources.feature_names, sources.background, np.median(rows, axis=0)
    mean = contributions.mean(axis=0)
    chosen = np.argsort(-np.abs(mean), kind="stable")[:limit]
    chosen = chosen[mean[chosen] != 0]
    values = mean[chosen].tolist()
    return [
        Weight(
            readable(names[i], 40),
            value,
            width,
            f"{number_of(here[i])}, usually {number_of(usual[i])}",
            column=i,
        )
        for i, value, width in zip(chosen.tolist(), values, _bar_widths(values), strict=True)
    ]


def _bar_widths(values: Sequence[float]) -> list[float]:
    """Return the size of each value in per cent of the largest."""
    largest = max(map(abs, values), default=1.0)
    return [round(100 * abs(value) / largest, 1) for value in values]


@dataclass(frozen=True)
class Question:
    """Rows, and the class whose score is to be explained for each.

    Attributes
    ----------
    X : rows
    classes : int64 array of shape (n_rows,)
    scores : float64 array of shape (n_rows,) or None
        Of the class, where they are known: then only copies of the row are scored.
    members : bool array of shape (n_members, n_rows) or None
        Those that are asked; None: all.
    """

    X: Any
    classes: Codes
    scores: Floats | None
    members: Flags | None


def ask(evaluation: Evaluation, X: Any, classes: Codes, places: Codes | None) -> Question:
    """Return the question for rows that are judged, in these places, or for others (None)."""
    if places is None:
        return Question(X, classes, None, None)
    scores = evaluation.scores[places, classes]
    return Question(X, classes, scores, evaluation.members_of(places))


def explain_words(model: Any, question: Question) -> list[WordContributions]:
    """Return what the words of each text add to the score."""
    found: dict[int, WordContributions] = {}
    for part, label, here in _parts(model, question):
        of_part = contributions_of_texts(
            part,
            [question.X[place] for place in here.tolist()],
            label,
            max_pieces=_PIECES,
            scores=None if question.scores is None else question.scores[here],
        )
        found.update(zip(here.tolist(), of_part, strict=True))
    return [found[place] for place in range(len(found))]


def _explain_features(model: Any, question: Question, sources: Sources) -> Floats:
    """Return what each feature adds to the score, (n_rows, n_features)."""
    assert sources.background is not None
    values = np.empty((count_rows(question.X), len(sources.background)))
    for part, label, here in _parts(model, question):
        values[here] = feature_contributions(
            part,
            take_rows(question.X, here),
            background=sources.background,
            class_=label,
            feature_names=sources.feature_names,
            scores=None if question.scores is None else question.scores[here],
        ).values
    return values


def _parts(model: Any, question: Question) -> Iterator[tuple[Any, Any, Codes]]:
    """Yield who is asked, about which label, for which rows."""
    labels = plain_classes(model)
    asked = question.classes[:, None]
    if question.members is not None:
        asked = np.hstack([asked, question.members.T])
    kinds, number = np.unique(asked, axis=0, return_inverse=True)
    for kind, of in enumerate(kinds):
        part = model if question.members is None else model._only(of[1:].astype(np.bool_))
        yield part, labels[of[0]], np.flatnonzero(number.ravel() == kind)
