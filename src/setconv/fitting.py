"""A fit, from rows to decisions.

`fit_model` is the method of the paper, section 3, in the order in which data flows. `TrainingRun`
is what is asked of the model in training and right after it: representatives, the monitored figure,
out-of-fold scores. `decide` then chooses, on rows that the members had not seen, how scores become
decisions. Where checkpoints go comes last.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from setconv.data import Rows, StoredRows, count_each, count_heads, row_blocks
from setconv.decisions.minimums import FORWARD, SHARED, too_few_rows
from setconv.decisions.objective import Grounds, Objective, OutOfFoldScores, parse_objective
from setconv.decisions.rule import DecisionRule, FittedDecision, ReportSource
from setconv.episodes import EpisodeBatches, side_weights
from setconv.errors import DataError, ParameterError
from setconv.io.disk import GatheredRows, RowSubset
from setconv.linear import DiscriminantSums, LinearPart, fit_lines
from setconv.metrics.arithmetic import rarest
from setconv.metrics.intervals import effective_size
from setconv.metrics.report import report_of_nothing
from setconv.model import MOST_ANCHOR_ROWS, AnchorRows, SetConvModel
from setconv.nn.network import SetConvNetwork, resolve_device
from setconv.preprocessing import (
    FEW_COLUMNS,
    PreparedRows,
    Scaler,
    Spread,
    fit_scaler,
    prepare_rows,
)
from setconv.sampling import (
    FEWEST_FORWARD,
    Indices,
    Split,
    assign_folds,
    forward_cuts,
    is_many,
    row_keys,
    share_out,
    split_rows,
)
from setconv.training.checkpoint import CheckpointPlan, TrainingState
from setconv.training.early_stopping import monitored_figure
from setconv.training.loop import Callback, EpisodeLoss, Feed, Trainer
from setconv.training.optimizer import TrainingSettings

logger = logging.getLogger("setconv")
StandsFor: TypeAlias = tuple[float, ...] | None  # rows of its class for each judged one; None: 1
Parameters: TypeAlias = SimpleNamespace  # those of the classifier by name, as plain values
_SCALING_ROWS = 4096  # rows by which the linear part of the scores is weighed
_VALIDATION_FOLDS = 5  # by which decisions are judged where there are no members
MOST_EVIDENCE = 200_000  # rows that are judged out of fold


@dataclass(frozen=True)
class FitResult:
    """What a fit leaves: the model, how training went, decisions and how good they are."""

    model: SetConvModel
    state: TrainingState
    decision: FittedDecision


def fit_model(
    parameters: Parameters,
    classes: NDArray[Any],
    train: Rows,
    *,
    validation: Rows | None = None,
    class_weights: NDArray[np.float64],
    seed: int,
    spread: Spread | None = None,
    digest: bytes = b"",
    notes: tuple[str, ...] = (),
    callbacks: Sequence[Callback] = (),
    resume_from: str | Path | None = None,
) -> FitResult:
    """Fit a model to rows, in the order in which data flows.

    Parameters
    ----------
    parameters : Parameters
        Of the classifier, checked.
    classes : array of shape (n_classes,)
    train : Rows
    validation : Rows, optional
        Looked at during training; picks the weights with ``early_stopping``.
    class_weights : array of shape (n_classes,)
    seed : int
    spread : Spread, optional
        That of the rows, where a pass over them has learned it already.
    digest : bytes
        What tells the rows from others.
    notes : tuple of str
        What to know about the training rows before reading the report.
    callbacks : sequence of Callback
    resume_from : path, optional
        Folder of a checkpoint of the same fit.
    """
    n_classes = len(classes)
    seeds = np.random.SeedSequence(seed).generate_state(8).tolist()
    init_seed, episode_seed, dropout_seed, anchor_seed = seeds[:4]
    post_seed, fold_seed, rule_seed, projection_seed = seeds[4:]

    # The rows as the network sees them, and what follows from their shape.
    prepared = prepare_rows(parameters.scaling, train, projection_seed)
    features, (n_rows, n_inputs) = prepared.features, prepared.features.shape
    parameters = settle(parameters, n_rows, prepared, train.groups, n_classes)
    n_members = parameters.n_members
    has_evidence = n_members > 1 or validation is not None
    objective = _check_objective(parameters.objective, classes, has_evidence=has_evidence)
    device = resolve_device(parameters.device)

    # The members: each leaves rows out, has anchors of its own (section 3.2) and a network.
    split = _split(train, classes, n_members, fold_seed)
    views = prepared.choose_views(parameters.scaling, n_members)
    if spread is None or not views:
        scaler = fit_scaler(views, features, train.weights_once)
    else:
        scaler = Scaler((spread.standard(),))
    anchors = AnchorRows(parameters.anchor, split, train.weights, n_classes, n_inputs, anchor_seed)
    layers = ("n_members", "encoder", "out_features", "output", "similarity")
    network = SetConvNetwork(
        scaler.width(n_inputs),
        n_heads=count_heads(n_classes),
        share_encoder=parameters.heads == "shared",
        generator=torch.Generator().manual_seed(init_seed),
        **_named(parameters, *layers, "dropout", "input_dropout"),
    ).to(device)

    # Episodes in the class ratio (section 3.1), and the loss of their queries (equations 5-6).
    sizes = _named(parameters, "support_size", "n_queries", "n_episodes", "query_source")
    episodes = EpisodeBatches(
        split, n_classes, sharing=parameters.heads, random_state=episode_seed, **sizes
    )
    sides = np.tile(side_weights(class_weights), (n_members, 1))
    loss = EpisodeLoss(episodes.layout, sides, device)
    offset = loss.offset.flatten()[: count_heads(n_classes)].tolist()

    # A second pass gathers the rows that are asked for by number, of those that are not in memory,
    # and makes sums for anchors and for the linear part beside the network.
    looked, stands_for = _draw_evidence(split, n_classes, rule_seed)
    stored, drawn = isinstance(features, StoredRows), np.empty(0, dtype=np.int64)
    if stored or is_many(n_rows):
        drawn = episodes.plan(parameters.max_steps)
    with ExitStack() as opened:
        rows: Any = features
        if isinstance(features, StoredRows):
            subsets = _draw_subsets(split, parameters.post_size, [post_seed, 0])
            others = [looked, _evenly(n_rows), *anchors.chosen, *subsets]
            rows = opened.enter_context(closing(_gathered(features, drawn, others)))
        del drawn
        linear = _second_pass(
            prepared, train, split, rows, anchors, scaler, device, lines=parameters.linear_share > 0
        )
        model = SetConvModel.make(
            network,
            anchors.anchors(rows),
            scaler=scaler,
            n_classes=n_classes,
            offset=offset,
            front=prepared.front,
            linear=linear,
            chosen=split.speakers,
        )
        given = rows if stored else train.features
        evidence = _Evidence.of(train, rows, split, looked, stands_for)
        run = TrainingRun(model, train, given, split, evidence, post_seed, validation, parameters)
        run.check_confidence(objective)
        uniform = bool((train.weights == train.weights[0]).all())
        weights = None if uniform else torch.from_numpy(train.weights).float().to(device)
        trainer = Trainer(
            network,
            Feed(rows, scaler, device, n_members),
            model.scaled_anchors(),
            episodes,
            loss,
            TrainingSettings(**_named(parameters, *(one.name for one in fields(TrainingSettings)))),
            seed=dropout_seed,
            row_weights=weights,
            evaluate=None if validation is None else run.evaluate,
            restore_best=parameters.early_stopping,
            callbacks=callbacks,
            checkpoints=_plan_checkpoints(run, seed, digest, resume_from),
        )
        plan = (*train.features.shape, n_classes, n_members, parameters.max_steps, device)
        logger.info(
            "Fitting %d rows of %d features in %d classes: %d members, %d steps on %s.", *plan
        )
        state = trainer.run()
        logger.info("Took %d steps; the last training loss is %.4f.", state.step, state.loss)

        # Post-training (section 3.1), and a decision on rows that were left out.
        model, unseen = run.score_unseen(run.represented(), classes.tolist(), rule_seed)
    notes = (*notes, *_judging_notes(train.moments, split, unseen))
    decision = decide(unseen, train.codes, classes, class_weights, objective, rule_seed, notes)
    return FitResult(model, state, decision)


def _second_pass(
    prepared: PreparedRows,
    train: Rows,
    split: Split,
    by_number: Any,
    anchors: AnchorRows,
    scaler: Scaler,
    device: torch.device,
    *,
    lines: bool,
) -> LinearPart | None:
    """Gather rows and make sums in one pass over all; return the linear part, if there are lines.

    Its sums are large, and let go here.
    """
    n_classes = int(split.classes.max()) + 1
    discriminants: DiscriminantSums | None = None
    if lines and not prepared.has_lines:
        discriminants = DiscriminantSums(train.codes, train.weights, split, n_classes)
    gathers = isinstance(by_number, GatheredRows)
    if gathers or discriminants is not None or anchors.from_sums:
        for part, rows in row_blocks(prepared.features):
            if gathers:
                by_number.add(part, rows)
            if anchors.from_sums:
                anchors.add(part, rows)
            if discriminants is not None:
                discriminants.add(part, torch.from_numpy(scaler(rows)).to(device))
    if discriminants is not None:
        return discriminants.fit()
    if not lines:
        return None
    left_out = split.left_out_of(slice(None))
    return fit_lines(csr_matrix(train.features), train.codes, train.weights, left_out, n_classes)


def _split(train: Rows, classes: NDArray[Any], n_members: int, seed: int) -> Split:
    """Say which members leave which rows out, and which of them judge these."""
    moments, codes = train.moments, train.codes
    if moments is None:
        return split_rows(codes, n_members, seed, train.units, None, train.buckets)
    if n_members < FEWEST_FORWARD:
        raise ParameterError(
            f"n_members={n_members} with time: some members judge rows that come after all that "
            f"they learned, the others predict. Give n_members of at least {FEWEST_FORWARD}.",
            parameter="n_members",
        )
    cuts = forward_cuts(moments, codes, max(2, n_members // 2))
    passed = np.searchsorted(cuts, moments, side="right")
    split = split_rows(codes, n_members, seed, train.units, passed, train.buckets)
    if not split.counts[split.judged.any(axis=0)].any():
        early = np.bincount(codes[moments < moments.max()], minlength=len(classes))
        late = int(np.argmin(early.clip(max=2) - (np.bincount(codes) > 2)))
        raise DataError(
            f"No row can be judged forward in time: class {classes.tolist()[late]!r} has "
            f"{early[late]} rows before the last moment, too few to be known by then. Fit without "
            "time, or give later rows.",
            parameter="time",
        )
    return split


def _evenly(n_rows: int) -> Indices:
    """Return the rows by which the linear part is weighed."""
    return np.arange(0, n_rows, -(-n_rows // _SCALING_ROWS))


def _gathered(stream: Any, drawn: Indices, others: Sequence[Indices]) -> GatheredRows:
    """Return a place for rows of a stream: those that training draws first, in that order."""
    wanted = np.zeros(stream.shape[0], dtype=np.bool_)
    wanted[drawn] = True
    extra = np.unique(np.concatenate(others))
    numbers = np.concatenate([drawn, extra[~wanted[extra]]])
    order = np.argsort(numbers)
    return GatheredRows(stream, numbers[order], order)


def most_gathered(parameters: Parameters, n_rows: int, n_classes: int) -> int:
    """Return how many rows of a stream a fit gathers at most; nothing is left to "auto"."""
    n_members, heads = parameters.n_members, count_heads(n_classes)
    apart = parameters.heads == "separate"
    groups, sides = (n_members * heads, 2) if apart else (n_members, n_classes)
    episode = max(parameters.support_size, sides) + sides * parameters.n_queries
    drawn = parameters.max_steps * groups * parameters.n_episodes * episode
    others: int = _SCALING_ROWS + n_members * max(parameters.post_size or 0, n_classes)
    if n_members > 1:
        others += MOST_EVIDENCE
    if parameters.anchor != "mean":
        others += n_members * heads * MOST_ANCHOR_ROWS
    return min(n_rows, int(drawn + others))


def _draw_evidence(split: Split, n_classes: int, seed: int) -> tuple[Indices, StandsFor]:
    """Return the rows that are scored out of fold, and how many of its class each stands for.

    All rows or, of very many, all of the rare classes and a sample of the others.
    """
    n_rows = len(split.kinds)
    if len(split.left_out) == 1 or n_rows <= MOST_EVIDENCE:
        return np.arange(n_rows if len(split.left_out) > 1 else 0), None
    judged = np.asarray(split.judged.any(axis=0))
    counts = split.count_by_class(judged)
    sizes, left = np.zeros(n_classes, dtype=np.int64), MOST_EVIDENCE
    for place, code in enumerate(np.argsort(counts, kind="stable")):
        sizes[code] = min(counts[code], left // (n_classes - place))
        left -= sizes[code]
    drawn = split.draw_by_class(judged, sizes, np.random.default_rng(seed))
    stands_for = np.where(sizes > 0, counts / np.maximum(sizes, 1), 1.0)
    return drawn, tuple(stands_for.tolist())


def settle(
    parameters: Parameters,
    n_rows: int,
    prepared: PreparedRows,
    groups: Indices | None = None,
    n_classes: int = 2,
) -> Parameters:
    """Return the parameters of the fit; what is "auto" follows the shape of the data.

    Parameters
    ----------
    parameters : Parameters
    n_rows : int
    prepared : PreparedRows
        The rows, or others like them.
    groups : int64 array of shape (n_rows,), optional
    n_classes : int, default=2
    """
    n_features = prepared.kind_of_width
    few, n_groups = n_features <= FEW_COLUMNS, None if groups is None else len(np.unique(groups))
    linear_share = automatic_linear_share(n_rows, n_features, n_groups)
    automatic = {
        "max_steps": automatic_steps(n_rows, few),
        "lr": 0.003 if few else 0.001,
        "encoder": (128,) if few else (256,),
        "out_features": 64 if few else 128,
        "n_members": 10 if n_rows <= 5000 else 5,
        "n_episodes": _automatic_episodes(parameters, n_rows, n_classes, few),
        "dropout": 0.2 if few else 0.4,
        "input_dropout": 0.0 if few else 0.5,
        "linear_share": _SPARSE_LINEAR_SHARE if prepared.has_lines else linear_share,
    }
    given = vars(parameters)
    open_ones = {name: v for name, v in automatic.items() if isinstance(given[name], str)}
    return SimpleNamespace(**given | open_ones)


_SMALL_TABLE = 500  # rows up to which more steps, or longer ones, bring nothing


def _automatic_episodes(
    parameters: Parameters, n_rows: int, n_classes: int, few_columns: bool
) -> int:
    """Return 1 to 4, or fewer: with many classes an episode has more rows, a step not more."""
    small = few_columns and n_rows <= _SMALL_TABLE
    episodes = 1 if small else 2 if n_rows <= 2000 else 4
    if parameters.heads == "separate":
        return episodes
    support, queries = parameters.support_size, parameters.n_queries
    shorter = episodes * (support + 2 * queries) / (support + n_classes * queries)
    return max(1, round(float(shorter)))


def automatic_steps(n_rows: int, few_columns: bool) -> int:
    """Return the steps for ``max_steps="auto"``: one for 20 rows, but 200 to 600, and to 1500."""
    least = 600 if not few_columns else 200 if n_rows <= _SMALL_TABLE else 300
    return min(max(least, n_rows // 20), 1500)


_SPARSE_LINEAR_SHARE = 0.8
_MOST_LINEAR_COLUMNS = 4096
_FEW_GROUPS = 50


def automatic_linear_share(n_rows: int, n_features: int, n_groups: int | None = None) -> float:
    """Return the share for ``linear_share="auto"``.

    A half where the rows come in a few groups, for new rows will then be of other groups, unlike
    all that were seen. Else a quarter up to 5,000 rows, then less: with many rows the network
    knows better. With few columns, or so many that the metric costs too much, none.
    """
    if not FEW_COLUMNS < n_features <= _MOST_LINEAR_COLUMNS:
        return 0.0
    if n_groups is not None and n_groups <= _FEW_GROUPS:
        return 0.5
    return 0.25 * min(1.0, 5000 / n_rows)


def _check_objective(objective: Any, classes: NDArray[Any], *, has_evidence: bool) -> Objective:
    """Read the objective, and say before training if it cannot be served."""
    parsed = parse_objective(objective, classes)
    if not has_evidence and parsed.kind not in ("paper", "balanced"):
        raise ParameterError(
            f"objective={objective!r} chooses a threshold on out-of-fold scores, and n_members=1 "
            "has none: give n_members of at least 2, or X_val and y_val.",
            parameter="objective",
        )
    return parsed


# Measured by benchmarks.quality.confidence.
JUDGED_BY_PARTS = (
    "Each row is judged by {} of {} members, so that figures tend to be low: on made data with 20 "
    "to 60 rare rows AUC by .013 and AP by .016 on average."
)


def _judging_notes(
    moments: NDArray[np.int64] | None, split: Split, unseen: UnseenRows
) -> tuple[str, ...]:
    """Say who judged the rows, and what to think of it."""
    if unseen.source != "out_of_fold" or unseen.left_out is None or not len(unseen.evidence):
        return ()
    n_rows, n_judged = len(split.kinds), len(unseen.evidence)
    if moments is None:
        parts = JUDGED_BY_PARTS.format(unseen.left_out.sum(axis=0).max(), len(split.left_out))
        return (parts,)
    behind = int(split.counts[split.judged.any(axis=0)].sum())
    said = (
        "Rows are judged forward in time, each by a network that learned from earlier rows only; "
        f"the first {n_rows - behind:,} rows are not judged"
    )
    known = behind - n_judged
    if known and unseen.evidence.stands_for is None:
        said += f", nor {known:,} with a copy, or a row of their group, among the earlier ones"
    return (f"{said}.",)


def _named(parameters: Parameters, *names: str) -> dict[str, Any]:
    """Return some of the parameters, to be handed on by their names."""
    return {name: getattr(parameters, name) for name in names}


class UnseenRows(NamedTuple):
    """Rows that the model, or some of its members, did not learn from, with their scores."""

    evidence: OutOfFoldScores
    source: ReportSource
    unjudged: dict[Any, str]
    left_out: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None
    doubt: str = ""


@dataclass(frozen=True)
class _Evidence:
    """Training rows that are scored out of fold.

    Attributes
    ----------
    rows : int64 array of shape (n_rows,)
        In ascending order.
    judged : bool array of shape (n_members, n_rows)
        The members that judge a row: that left it out, and have seen neither a copy nor a row of
        its group.
    units : int64 array of shape (n_rows,), optional
        Equal for rows that belong together.
    stands_for : tuple of float, optional
        How many rows of its class each stands for; None: for itself.
    doubt : str
        Why no confidence can be stated on them.
    """

    rows: Indices
    judged: NDArray[np.bool_]
    units: NDArray[Any] | None
    stands_for: StandsFor
    doubt: str

    @classmethod
    def of(
        cls, train: Rows, features: Any, split: Split, rows: Indices, stands_for: StandsFor
    ) -> _Evidence:
        """Say who judges the rows; ``features`` has theirs by number."""
        judged, crossed = split.judged[:, split.kinds[rows]], False
        for ties in (train.units, train.crossing):
            if ties is not None and len(rows):
                kept = judged & ~split.learned(ties, rows)
                crossed = crossed or (ties is train.crossing and bool((kept != judged).any()))
                judged = kept
        units, doubt = (None if train.units is None else train.units[rows]), ""
        if train.moments is not None:
            doubt = FORWARD
        elif train.crossing is not None and (train.buckets is None or crossed):
            doubt = SHARED
        if train.buckets is not None and units is None and not train.natural and len(rows):
            keys = row_keys(RowSubset(features, rows))
            same = np.unique(keys, return_inverse=True)[1]
            units = same if len(keys) > same.max(initial=-1) + 1 else None
        return cls(rows, judged, units, stands_for, doubt)

    @property
    def known(self) -> Indices:
        """The places of those that somebody judges."""
        return np.flatnonzero(self.judged.any(axis=0))


def _draw_subsets(split: Split, size: int | None, seed: Sequence[int]) -> list[Indices]:
    """Return the random rows of each member that its representatives are made of (section 3.1).

    In the class ratio; none if ``size`` is, for they are made of all rows then.
    """
    if size is None:
        return []
    rng, found = np.random.default_rng(seed), []
    for out in split.left_out:
        counts = split.count_by_class(~out)
        places = share_out(counts, max(len(counts), min(size, counts.sum())))
        found.append(split.draw_by_class(~out, places, rng))
    return found


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A model in training with its rows: representatives, validation, out-of-fold scores.

    Attributes
    ----------
    model : SetConvModel
        Its network is trained in place; it has seen no rows.
    train : Rows
    rows : array, csr matrix or GatheredRows
        The training rows by number, as far as they are asked for.
    split : Split
        Which members learn from which training rows.
    evidence : _Evidence
        Those that are scored out of fold.
    seed : int
        Of the rows that representatives are made of, if not of all.
    validation : Rows or None
    parameters : Parameters
        With nothing left to "auto".
    """

    model: SetConvModel
    train: Rows
    rows: Any
    split: Split
    evidence: _Evidence
    seed: int
    validation: Rows | None
    parameters: Parameters

    def represented(self, draw: int = 0) -> SetConvModel:
        """Post-training (section 3.1): representatives from all rows or from a random subset.

        A member's own rows only.
        """
        train, model = self.train, self.model.without_rows()
        # By the seed and `draw` alone, so that a resumed run has the same.
        own = _draw_subsets(self.split, self.parameters.post_size, [self.seed, draw])
        if own:
            used = np.unique(np.concatenate(own))
            out = np.stack([~np.isin(used, one) for one in own])
            some = RowSubset(self.rows, used)
            model = model.with_rows(
                some, train.codes[used], train.weights[used], lambda part: out[:, part]
            )
        else:
            left_out = self.split.left_out_of
            model = model.with_rows(train.features, train.codes, train.weights, left_out)
        if model.linear is None:
            return model
        # The linear part has its share by the rows that a member left out, if it did; forward in
        # time by its own, for judges are to know nothing of later ones, and be like the others.
        evenly = _evenly(len(train.codes))
        counted = self.split.left_out_of(evenly)
        counted = counted if train.moments is None else ~counted
        counted = np.where(counted.sum(axis=1, keepdims=True) > 1, counted, True)
        return model.with_linear_share(self.rows[evenly], self.parameters.linear_share, counted)

    def evaluate(self, step: int) -> float:
        """Return the monitored figure on the validation rows."""
        assert self.validation is not None
        scores = self.represented(step).scores(self.validation.features)
        return monitored_figure(self.parameters.monitor, scores, self.validation.codes)

    def check_confidence(self, objective: Objective) -> None:
        """Say before training what a confidence needs that the rows cannot give."""
        if objective.confidence is None:
            return
        rows, why, evidence = self.train, None, self.evidence
        if len(self.split.left_out) > 1:
            known = evidence.known
            judged = evidence.rows[known]
            units = None if evidence.units is None else evidence.units[known]
            rows = Rows(self.rows, rows.codes[judged], rows.weights[judged], units=units)
            why = f"{objective}: {evidence.doubt}" if evidence.doubt else None
        elif self.validation is not None:
            rows = self.validation.take(np.flatnonzero(self.validation.weights))
            if self.parameters.early_stopping:
                why = f"{objective}: the validation rows choose the weights. Give members instead."
        if why is None and objective.kind == "recall":
            rare = rarest(count_each(self.train.codes))
            own = rows.codes == (rare if objective.target is None else objective.target)
            size = effective_size(rows.weights[own])
            if rows.units is not None:
                size = len(np.unique(rows.units[own]))
            why = too_few_rows(objective, size)
        if why is not None:
            raise ParameterError(why, parameter="objective")

    def score_unseen(
        self, model: SetConvModel, labels: Sequence[Any], seed: int
    ) -> tuple[SetConvModel, UnseenRows]:
        """Score out-of-fold rows where there are members, else validation rows if there are any.

        Each training row is scored by the members that left it out; those that nobody left out
        are not among the rows.

        Returns
        -------
        model : SetConvModel
            The same with its members on one scale.
        unseen : UnseenRows
        """
        if len(self.split.left_out) == 1:
            return model, self._score_validation(model, labels, seed)
        train, asked = self.train, self.evidence
        every = len(asked.rows) == len(train.codes) and not isinstance(self.rows, GatheredRows)
        raw = model.member_scores(self.rows if every else RowSubset(self.rows, asked.rows))
        # Forward in time members leave out other shares of the rows, and what was learned scores
        # further apart: each is put on the scale of what it has not seen.
        counted = None if train.moments is None else self.split.left_out_of(asked.rows)
        stands_for = None
        if asked.stands_for is not None:
            stands_for = np.asarray(asked.stands_for)[train.codes[asked.rows]]
        model = model.aligned(raw, counted, stands_for)
        known = asked.known
        rows, judged = asked.rows[known], asked.judged[:, known]
        codes = train.codes[rows].astype(np.int64)
        evidence = OutOfFoldScores(
            scores=model.average(raw[known], judged),
            codes=codes,
            weights=np.array(train.weights[rows]),
            n_classes=len(labels),
            units=None if asked.units is None else asked.units[known],
            stands_for=asked.stands_for,
        )
        unjudged = _never_left_out(train, np.bincount(codes, minlength=len(labels)), labels)
        rows = rows if train.numbers is None else train.numbers[rows]
        evened = evidence.evened()
        return model, UnseenRows(evened, "out_of_fold", unjudged, judged, rows, asked.doubt)

    def _score_validation(
        self, model: SetConvModel, labels: Sequence[Any], seed: int
    ) -> UnseenRows:
        validation = self.validation
        if validation is None or not validation.weights.any():
            why = "n_members=1 leaves no row out of training, and there are no validation rows"
            return UnseenRows(OutOfFoldScores.none(len(labels)), "none", dict.fromkeys(labels, why))
        fresh = validation.take(np.flatnonzero(validation.weights))  # no copies of training rows
        rng = np.random.default_rng(seed)
        folds = assign_folds(fresh.codes, _VALIDATION_FOLDS, fresh.units, rng)
        absent = [label for code, label in enumerate(labels) if code not in fresh.codes]
        why = "the validation rows have none of it that is not a training row too"
        if self.parameters.early_stopping:
            absent = list(labels)
            why = "the validation rows chose the weights, and n_members=1 leaves no other row out"
        evidence = OutOfFoldScores(
            scores=model.scores(fresh.features),
            codes=fresh.codes,
            weights=fresh.weights,
            n_classes=len(labels),
            units=fresh.units,
        )
        source: ReportSource = "none" if self.parameters.early_stopping else "validation"
        left_out = folds == np.arange(_VALIDATION_FOLDS)[:, None]
        return UnseenRows(evidence.evened(), source, dict.fromkeys(absent, why), left_out)


def decide(
    unseen: UnseenRows,
    codes: NDArray[np.int64],
    classes: NDArray[Any],
    class_weights: NDArray[np.float64],
    objective: Objective,
    seed: int,
    notes: tuple[str, ...],
) -> FittedDecision:
    """Choose the decision rule on rows that the members had not seen, and report on them.

    ``codes`` are those of all training rows: how frequent the classes are.
    """
    labels = tuple(classes.tolist())
    counts = count_each(codes, len(labels))
    grounds = Grounds(
        classes=classes,
        positive=rarest(counts),
        train_prior=counts / len(codes),
        class_weights=class_weights,
        evidence=unseen.evidence,
        seed=seed,
        doubt=unseen.doubt,
    )
    found = FittedDecision(
        rule=DecisionRule.choose(grounds, objective),
        report=report_of_nothing(labels, labels[grounds.positive], unseen.unjudged),
        source=unseen.source,
        left_out=unseen.left_out,
        rows=unseen.rows,
        notes=notes,
    )
    if unseen.source != "none" and unseen.unjudged:
        named = ", ".join(f"{label!r} ({why})" for label, why in unseen.unjudged.items())
        warnings.warn(
            f"Classes that cannot be judged, and have no figures: {named}. What thresholds rest "
            f"on: {found.basis}. Give rows that differ, or more groups.",
            UserWarning,
            stacklevel=2,
        )
    return found.reported()


def _never_left_out(
    train: Rows, judged: NDArray[np.int64], labels: Sequence[Any]
) -> dict[Any, str]:
    """Say of each class without an out-of-fold row why it has none."""
    found = {}
    for code in np.flatnonzero(judged == 0).tolist():
        own = train.codes == code
        groups, units = (None if a is None else a[own] for a in (train.groups, train.units))
        if own.sum() == 1:
            why = "it has a single row"
        elif train.moments is not None:
            why = "no network that knows all classes from earlier rows could judge one of it"
        elif groups is not None and len(np.unique(groups)) == 1:
            why = "all its rows are in one group"
        elif units is not None and len(np.unique(units)) == 1:
            why = "all its rows are copies of one, or in groups that share copies"
        elif train.crossing is not None:
            why = "its rows have copies in other groups"
        else:
            why = "its rows are in groups that no member could leave out"
        found[labels[code]] = why
    return found


# Parameters that do not change what is trained, or show in its arrays.
_NOT_TRAINED = {"anchor", "objective", "class_weight", "device", "progress", "callbacks"}
_NOT_TRAINED |= {"checkpoint_dir", "random_state"}


def _plan_checkpoints(
    run: TrainingRun, seed: int, rows_digest: bytes, resume_from: str | Path | None
) -> CheckpointPlan:
    """Say where checkpoints go, and which run they belong to."""
    parameters, model = run.parameters, run.model
    if parameters.checkpoint_dir is None and resume_from is None:
        return CheckpointPlan()
    trained = sorted((k, v) for k, v in vars(parameters).items() if k not in _NOT_TRAINED)
    digest = hashlib.blake2b(repr((trained, seed)).encode() + rows_digest, digest_size=20)
    arrays = [model.anchors, np.asarray(model.offset), run.split.kinds, run.split.left_out]
    arrays += [tensor.cpu().numpy() for tensor in model.network.state_dict().values()]
    arrays += [run.train.codes]
    if run.train.weights.strides[0]:  # else all are 1
        arrays.append(run.train.weights)
    if run.validation is not None:
        arrays += [run.validation.codes, run.validation.weights, row_keys(run.validation.features)]
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    folder = None if parameters.checkpoint_dir is None else Path(parameters.checkpoint_dir)
    return CheckpointPlan(folder, resume_from, digest.hexdigest())
