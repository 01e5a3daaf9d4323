"""What a fit will take, said before it: rows, bytes that it writes, and time.

`estimate_fit` opens the rows as a fit does, settles what is "auto" by their shape, and fits a few
of them, with the settled sizes, for a few steps. Nothing is written.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from setconv.classifier import SetConvClassifier, check_parameters
from setconv.data import Rows, StoredRows, row_blocks
from setconv.decisions.objective import parse_objective
from setconv.fitting import MOST_EVIDENCE, Parameters, most_gathered, settle
from setconv.persistence import describe
from setconv.pipelines import EncodedClassifier
from setconv.preprocessing import prepare_rows
from setconv.sampling import check_groups, share_out
from setconv.validation import check_labels, encode_labels, open_rows

_SAMPLE = 1999  # rows that are fitted
_TEXTS = 48  # texts that a network encodes
_STEPS = (10, 30)  # of the fits between which steps are timed
_LOOK = 1.0  # seconds of reading after which its rate is known
_PASSES = 3  # over rows that are not in memory: look, gather and sum, represent


@dataclass(frozen=True)
class FitEstimate:
    """What a fit will take.

    Attributes
    ----------
    n_rows, n_columns : int
        Columns are the features after encoding.
    classes : dict of label to int
        The rows of each class.
    in_memory : bool
        Whether the rows are read into memory; else they are read from disk when needed.
    steps : int
        Training steps.
    scratch_bytes : int
        The scratch file has at most so many bytes; 0 of rows in memory.
    model_bytes : int
        About what the model's folder has.
    seconds : float
        About how long the fit takes on this machine, if it is as busy as now.
    """

    n_rows: int
    n_columns: int
    classes: dict[Any, int]
    in_memory: bool
    steps: int
    scratch_bytes: int
    model_bytes: int
    seconds: float


def estimate_fit(
    estimator: Any, X: Any, y: Any, *, groups: Any = None, time: Any = None
) -> FitEstimate:
    """Say what ``estimator.fit(X, y)`` will take; nothing is written, and nothing is fitted.

    Parameters
    ----------
    estimator : SetConvClassifier, SetConvTextClassifier or SetConvTableClassifier
        Texts are encoded without the cache, so that one that has them takes less time.
    X, y, groups, time : as for ``estimator.fit``
        Texts are a list, and what is no number a table of pyarrow or pandas.

    Returns
    -------
    FitEstimate

    Examples
    --------
    >>> from setconv import SetConvClassifier
    >>> from setconv.estimate import estimate_fit
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]] * 9, [0, 0, 0, 1] * 9
    >>> found = estimate_fit(SetConvClassifier(), X, y)
    >>> found.n_rows, found.classes, found.scratch_bytes
    (36, {0: 27, 1: 9}, 0)
    """
    classifier, encoding = estimator, 0.0
    if isinstance(estimator, EncodedClassifier):
        classifier = estimator.classifier or SetConvClassifier()
        rows, encoding = _encoded(estimator, X)
        labels = check_labels(y, len(X))
    parameters = check_parameters(classifier)
    if classifier is estimator:
        rows, labels, _ = open_rows(clone(classifier), X, y, reset=True, time=time)
    classes, codes = encode_labels(labels)
    parse_objective(parameters.objective, classes)
    ties = check_groups(groups, len(codes))
    (n_rows, width), counts = (len(codes), rows.shape[1]), np.bincount(codes)
    # What a step costs depends on the shape of the rows alone, so rows are made up; of sparse
    # ones it depends on the columns that they share.
    of = np.repeat(np.arange(len(classes)), share_out(counts, min(n_rows, _SAMPLE), least=8))
    sample: Any = np.random.default_rng(0).standard_normal((len(of), width)).astype(np.float32)
    sample = rows[: len(of)] if issparse(rows) else sample
    prepared = prepare_rows(parameters.scaling, Rows(sample, of, np.ones(len(of))), 0)
    parameters = settle(parameters, n_rows, prepared, ties, len(classes))
    fitted, training, embedding = _timed(parameters, sample, of)
    evidence = min(n_rows, MOST_EVIDENCE) if parameters.n_members > 1 else 0
    seconds, scratch = training + embedding * (n_rows + evidence) + encoding * n_rows, 0
    stored = isinstance(rows, StoredRows)
    if stored:
        seconds += _PASSES * _seconds_a_row(rows) * n_rows
        scratch = most_gathered(parameters, n_rows, len(classes)) * rows.nbytes // n_rows
    return FitEstimate(
        n_rows=n_rows,
        n_columns=width,
        classes=dict(zip(classes.tolist(), counts.tolist(), strict=True)),
        in_memory=not stored,
        steps=parameters.max_steps,
        scratch_bytes=scratch,
        # Of the rows that were judged out of fold a model keeps what its decision rests on.
        model_bytes=sum(
            one.nbytes * evidence // len(of) if len(of) in one.shape else one.nbytes
            for one in describe(fitted).arrays.values()
        ),
        seconds=seconds,
    )


def _encoded(estimator: Any, X: Any) -> tuple[Any, float]:
    """Return the first rows as an encoder gives them, and the seconds that a row takes."""
    encoder, some = estimator._make_encoder(), X[:_SAMPLE]
    if hasattr(encoder, "cache"):  # a network, which takes long to load and to encode
        encoder.set_params(cache=False, progress=False)
        some = some[:_TEXTS]
        encoder.fit_transform(some[:1])
    start = perf_counter()
    rows = encoder.fit_transform(some)
    return rows, (perf_counter() - start) / len(some)


def _timed(parameters: Parameters, rows: Any, codes: NDArray[np.int64]) -> tuple[Any, float, float]:
    """Return a small fit, the seconds of all steps, and those of embedding a row."""
    given = vars(parameters) | {"callbacks": (), "checkpoint_dir": None, "progress": False}
    given |= {"objective": "balanced", "class_weight": None, "random_state": 0}
    taken = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong with made-up rows is nobody's fault
        for steps in _STEPS:
            fitted, start = SetConvClassifier(**given | {"max_steps": steps}), perf_counter()
            fitted.fit(rows, codes)
            taken.append(perf_counter() - start)
        start = perf_counter()
        fitted.predictions(rows)
        embedding = (perf_counter() - start) / len(codes)
    step = max(taken[1] - taken[0], 0.0) / (_STEPS[1] - _STEPS[0])
    return fitted, taken[0] + step * parameters.max_steps, embedding


def _seconds_a_row(rows: StoredRows) -> float:
    """Return how long reading a row from its file takes."""
    start, done = perf_counter(), 0
    for _, block in row_blocks(rows):
        done += len(block)
        if perf_counter() - start > _LOOK:
            break
    return (perf_counter() - start) / done
