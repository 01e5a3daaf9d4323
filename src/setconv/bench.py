"""What is asked of a model while and just after its network trains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setconv.episodes import share_out
from setconv.model import SetConvModel
from setconv.parameters import FitParameters
from setconv.rows import Rows
from setconv.training.validation import monitored_figure

_LEANING_ROWS = 4096  # rows by which the linear part of the scores is weighed


@dataclass(frozen=True)
class OutOfFold:
    """Scores of training rows by members that had not seen them.

    Attributes
    ----------
    scores : float64 array of shape (n_rows, heads)
    rows : int array of shape (n_rows,)
        Which training rows these are.
    left_out : bool array of shape (n_members, n_rows)
        Which members left them out.
    """

    scores: NDArray[np.float64]
    rows: NDArray[np.int64]
    left_out: NDArray[np.bool_]


class Bench:
    """A model in training with its rows: representatives, validation, out-of-fold scores.

    Parameters
    ----------
    model : SetConvModel
    train : Rows
    left_out : bool array of shape (n_members, n_rows)
    validation : Rows or None
    parameters : FitParameters
    linear_share : float
        Of the discriminants, where the model has them.
    seed : int
        For random subsets (``post_size``).
    """

    def __init__(
        self,
        model: SetConvModel,
        train: Rows,
        left_out: NDArray[np.bool_],
        validation: Rows | None,
        parameters: FitParameters,
        linear_share: float,
        seed: int,
    ) -> None:
        self.model = model
        self.train = train
        self.left_out = left_out
        self.validation = validation
        self._parameters = parameters
        self._linear_share = linear_share
        self._seed = seed

    def represent(self, draw: int = 0) -> None:
        """Post-training (section 3.1): representatives from all rows or from a random subset.

        A member's own rows only. The subset depends on the seed and ``draw`` alone, so that a
        resumed run has the same.
        """
        rows, left_out = self.train, self.left_out
        if self._parameters.post_size is not None:
            left_out = self._all_but_subsets(self._parameters.post_size, draw)
            used = np.flatnonzero(~left_out.all(axis=0))
            rows, left_out = rows.take(used), left_out[:, used]
        self.model.reset_representatives()
        batch = self._parameters.batch_size
        self.model.add_rows(rows.features, rows.codes, rows.weights, batch, left_out)
        if self.model.discriminants is not None:
            self._lean()

    def _lean(self) -> None:
        """Give the discriminants their share, by the rows that a member left out if it did."""
        n_rows = len(self.train.codes)
        some = np.arange(0, n_rows, -(-n_rows // _LEANING_ROWS))
        counted = self.left_out[:, some]
        counted = np.where(counted.sum(axis=1, keepdims=True) > 1, counted, True)
        rows, batch = self.train.features[some], self._parameters.batch_size
        self.model.lean_on_discriminants(rows, self._linear_share, batch, counted)

    def evaluate(self, step: int) -> float:
        """Return the monitored figure on the validation rows."""
        if self.validation is None:
            raise RuntimeError("there are no validation rows to look at")
        self.represent(step)
        scores = self.scores(self.validation)
        return monitored_figure(self._parameters.monitor, scores, self.validation.codes)

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """Return the scores of rows, averaged over the members."""
        return self.model.scores(rows.features, self._parameters.batch_size)

    @property
    def validation_chose(self) -> bool:
        """Whether the validation rows picked the weights, so that they tell nothing any more."""
        return self._parameters.early_stopping

    def score_out_of_fold(self) -> OutOfFold:
        """Put the members on one scale and score each row by those that left it out.

        Rows that nobody left out have no such score, and are not among the rows.
        """
        raw = self.model.member_scores(self.train.features, self._parameters.batch_size)
        self.model.align(raw)
        left_out = self._wholly_left_out()
        rows = np.flatnonzero(left_out.any(axis=0))
        left_out = left_out[:, rows]
        return OutOfFold(self.model.average(raw[rows], left_out), rows, left_out)

    def _wholly_left_out(self) -> NDArray[np.bool_]:
        """Return which rows each member has seen neither themselves nor in a copy."""
        copies = self.train.crossing
        if copies is None:
            return self.left_out
        wholly = self.left_out.copy()
        for member in wholly:
            learned = np.bincount(copies, weights=~member) > 0
            member &= ~learned[copies]
        return wholly

    def _all_but_subsets(self, size: int, draw: int) -> NDArray[np.bool_]:
        rng = np.random.default_rng([self._seed, draw])
        kept_out = np.ones_like(self.left_out)
        for member, left_out in zip(kept_out, self.left_out, strict=True):
            own = np.flatnonzero(~left_out)
            member[own[_ratio_preserving(self.train.codes[own], size, rng)]] = False
        return kept_out


def _ratio_preserving(
    codes: NDArray[np.int64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random subset of rows in the class ratio, at least one row a class."""
    present, counts = np.unique(codes, return_counts=True)
    places = share_out(counts, max(len(present), min(size, len(codes))))
    chosen = [
        rng.permutation(np.flatnonzero(codes == code))[:place]
        for code, place in zip(present, places, strict=True)
    ]
    return np.sort(np.concatenate(chosen))
