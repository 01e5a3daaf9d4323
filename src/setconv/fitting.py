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
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from setconv.data import Rows, count_heads
from setconv.decisions.minimums import FORWARD, SHARED, too_few_rows
from setconv.decisions.objective import Grounds, Objective, OutOfFoldScores, parse_objective
from setconv.decisions.rule import DecisionRule, FittedDecision, ReportSource
from setconv.episodes import (
    ABSENT,
    EpisodeBatches,
    head_sides,
    side_weights,
)
from setconv.errors import DataError, ParameterError
from setconv.linear import LinearPart, fit_discriminants, fit_lines
from setconv.metrics.arithmetic import rarest
from setconv.metrics.intervals import effective_size
from setconv.metrics.report import report_of_nothing
from setconv.model import Anchor, SetConvModel, compute_anchors
from setconv.nn.network import SetConvNetwork, resolve_device
from setconv.preprocessing import FEW_COLUMNS, fit_scaler, prepare_rows
from setconv.sampling import (
    FEWEST_FORWARD,
    assign_folds,
    draw_by_class,
    leave_later_out,
    leave_out,
    row_keys,
    share_out,
)
from setconv.training.checkpoint import CheckpointPlan, TrainingState
from setconv.training.early_stopping import monitored_figure
from setconv.training.loop import Callback, EpisodeLoss, Feed, Trainer
from setconv.training.optimizer import TrainingSettings

logger = logging.getLogger("setconv")
Parameters: TypeAlias = SimpleNamespace  # those of the classifier by name, as plain values
_SCALING_ROWS = 4096  # rows by which the linear part of the scores is weighed
_VALIDATION_FOLDS = 5  # by which decisions are judged where there are no members


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
    notes : tuple of str
        What to know about the training rows before reading the report.
    callbacks : sequence of Callback
    resume_from : path, optional
        Folder of a checkpoint of the same fit.
    """
    n_classes = len(classes)
    n_groups = None if train.groups is None else len(np.unique(train.groups))
    seeds = np.random.SeedSequence(seed).generate_state(8).tolist()
    init_seed, episode_seed, dropout_seed, anchor_seed = seeds[:4]
    post_seed, fold_seed, rule_seed, projection_seed = seeds[4:]

    # The rows as the network sees them, and what follows from their shape.
    prepared = prepare_rows(parameters.scaling, train, projection_seed)
    n_rows, n_inputs = prepared.features.shape
    parameters = settle(
        parameters,
        n_rows,
        prepared.kind_of_width,
        n_groups,
        n_classes=n_classes,
        has_lines=prepared.has_lines,
    )
    n_members = parameters.n_members
    has_evidence = n_members > 1 or validation is not None
    objective = _check_objective(parameters.objective, classes, has_evidence=has_evidence)
    device = resolve_device(parameters.device)

    # The members: each leaves rows out, has anchors of its own (section 3.2) and a network.
    speakers = np.ones(n_members, dtype=np.bool_)
    if train.moments is None:
        left_out = judged = leave_out(train.codes, n_members, train.units, fold_seed)
    else:
        left_out, judged, speakers = _leave_forward(
            train, train.moments, classes, n_members, fold_seed
        )
    views = prepared.choose_views(parameters.scaling, n_members)
    scaler = fit_scaler(views, prepared.features, train.weights_once)
    dense = replace(train, features=prepared.features)
    anchors = _member_anchors(parameters.anchor, dense, n_classes, left_out, anchor_seed)
    network = _build_network(parameters, scaler.width(n_inputs), n_classes, init_seed)
    network.to(device)

    # Episodes in the class ratio (section 3.1), and the loss of their queries (equations 5-6).
    episodes = EpisodeBatches(
        train.codes,
        n_classes,
        members=[np.flatnonzero(~out) for out in left_out],
        sharing=parameters.heads,
        support_size=parameters.support_size,
        n_queries=parameters.n_queries,
        n_episodes=parameters.n_episodes,
        query_source=parameters.query_source,
        random_state=episode_seed,
    )
    sides = np.tile(side_weights(class_weights), (n_members, 1))
    loss = EpisodeLoss(episodes.layout, sides, device)
    offset = loss.offset.flatten()[: count_heads(n_classes)].tolist()

    # Training, episode by episode; the linear part beside the network is fitted at once.
    feed = Feed(prepared.features, scaler, device, n_members)
    linear: LinearPart | None = None
    if parameters.linear_share > 0:
        known = (train.codes, train.weights, left_out, n_classes)
        linear = (
            fit_lines(csr_matrix(train.features), *known)
            if prepared.has_lines
            else fit_discriminants(feed.chunks(), *known)
        )
    model = SetConvModel.make(
        network,
        scaler,
        anchors,
        n_classes,
        offset,
        front=prepared.front,
        linear=linear,
        chosen=speakers,
    )
    run = TrainingRun(model, train, left_out, judged, validation, parameters, post_seed)
    run.check_confidence(objective)
    uniform = bool((train.weights == train.weights[0]).all())
    trainer = Trainer(
        network,
        feed,
        model.scaled_anchors(),
        episodes,
        loss,
        _training_settings(parameters),
        seed=dropout_seed,
        row_weights=None if uniform else torch.from_numpy(train.weights).float().to(device),
        evaluate=None if validation is None else run.evaluate,
        restore_best=parameters.early_stopping,
        callbacks=callbacks,
        checkpoints=_plan_checkpoints(run, seed, resume_from),
    )
    logger.info(
        "Fitting %d rows of %d features in %d classes: %d members, %d steps on %s.",
        *train.features.shape,
        n_classes,
        n_members,
        parameters.max_steps,
        device,
    )
    state = trainer.run()
    logger.info("Took %d steps; the last training loss is %.4f.", state.step, state.loss)

    # Post-training (section 3.1), and a decision on rows that were left out.
    model, unseen = run.score_unseen(run.represented(), classes.tolist(), rule_seed)
    notes = (*notes, *_judging_notes(train.moments, judged, unseen))
    decision = decide(unseen, train.codes, classes, class_weights, objective, rule_seed, notes)
    return FitResult(model, state, decision)


def settle(
    parameters: Parameters,
    n_rows: int,
    n_features: int,
    n_groups: int | None = None,
    *,
    n_classes: int = 2,
    has_lines: bool = False,
) -> Parameters:
    """Return the parameters of the fit; what is "auto" follows the shape of the data.

    Parameters
    ----------
    parameters : Parameters
    n_rows, n_features : int
        As the network sees them, after a projection.
    n_groups : int, optional
    n_classes : int, default=2
    has_lines : bool, default=False
        Whether the linear part sees all columns of sparse rows, of which the network sees less.
    """
    few = n_features <= FEW_COLUMNS
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
        "linear_share": _SPARSE_LINEAR_SHARE if has_lines else linear_share,
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


def _leave_forward(
    train: Rows, moments: NDArray[np.int64], classes: NDArray[Any], n_members: int, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return what `leave_later_out` does; say if nobody can judge."""
    if n_members < FEWEST_FORWARD:
        raise ParameterError(
            f"n_members={n_members} with time: some members judge rows that come after all that "
            f"they learned, the others predict. Give n_members of at least {FEWEST_FORWARD}.",
            parameter="n_members",
        )
    left_out, judged, speakers = leave_later_out(moments, train.codes, n_members, train.units, seed)
    if not judged.any():
        early = np.bincount(train.codes[moments < moments.max()], minlength=len(classes))
        late = int(np.argmin(early.clip(max=2) - (np.bincount(train.codes) > 2)))
        raise DataError(
            f"No row can be judged forward in time: class {classes.tolist()[late]!r} has "
            f"{early[late]} rows before the last moment, too few to be known by then. Fit without "
            "time, or give later rows.",
            parameter="time",
        )
    return left_out, judged, speakers


# Measured by benchmarks.quality.confidence.
JUDGED_BY_PARTS = (
    "Each row is judged by {} of {} members, so that figures tend to be low: on made data with 20 "
    "to 60 rare rows AUC by .013 and AP by .016 on average."
)


def _judging_notes(
    moments: NDArray[np.int64] | None, judged: NDArray[np.bool_], unseen: UnseenRows
) -> tuple[str, ...]:
    """Say who judged the rows, and what to think of it."""
    if unseen.source != "out_of_fold" or unseen.left_out is None or not len(unseen.evidence):
        return ()
    if moments is None:
        return (JUDGED_BY_PARTS.format(unseen.left_out.sum(axis=0).max(), len(judged)),)
    behind = int(judged.sum())
    said = (
        "Rows are judged forward in time, each by a network that learned from earlier rows only; "
        f"the first {len(moments) - behind:,} rows are not judged"
    )
    known = behind - len(unseen.evidence)
    if known:
        said += f", nor {known:,} with a copy, or a row of their group, among the earlier ones"
    return (f"{said}.",)


def _member_anchors(
    anchor: Anchor, train: Rows, n_classes: int, left_out: NDArray[np.bool_], seed: int
) -> NDArray[np.float64]:
    """Make the anchors of each member from its own rows, (n_stacked, n_anchors, n_features)."""
    rng = np.random.default_rng(seed)
    rules: Sequence[Anchor] = [anchor] * len(left_out)
    n_stacked = len(left_out) * count_heads(n_classes)
    if isinstance(anchor, np.ndarray) and anchor.ndim == 3 and len(anchor) == n_stacked:
        rules = np.split(anchor, len(left_out))  # one each, as saved
    found = []
    for out, rule in zip(left_out, rules, strict=True):
        sides = np.where(out, np.int8(ABSENT), head_sides(train.codes, n_classes))
        found.append(compute_anchors(rule, train.features, sides, train.weights, rng))
    most = max(anchors.shape[1] for anchors in found)
    # Where members came to different numbers of anchors, the fewer are repeated in turn.
    return np.concatenate([anchors[:, np.arange(most) % anchors.shape[1]] for anchors in found])


def _build_network(
    parameters: Parameters, n_inputs: int, n_classes: int, seed: int
) -> SetConvNetwork:
    """Make a network with fresh weights."""
    return SetConvNetwork(
        n_inputs,
        n_heads=count_heads(n_classes),
        n_members=parameters.n_members,
        encoder=parameters.encoder,
        out_features=parameters.out_features,
        output=parameters.output,
        similarity=parameters.similarity,
        dropout=parameters.dropout,
        input_dropout=parameters.input_dropout,
        share_encoder=parameters.heads == "shared",
        generator=torch.Generator().manual_seed(seed),
    )


def _training_settings(parameters: Parameters) -> TrainingSettings:
    names = [field.name for field in fields(TrainingSettings)]
    return TrainingSettings(**{name: getattr(parameters, name) for name in names})


class UnseenRows(NamedTuple):
    """Rows that the model, or some of its members, did not learn from, with their scores."""

    evidence: OutOfFoldScores
    source: ReportSource
    unjudged: dict[Any, str]
    left_out: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None
    doubt: str = ""


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A model in training with its rows: representatives, validation, out-of-fold scores.

    Attributes
    ----------
    model : SetConvModel
        Its network is trained in place; it has seen no rows.
    train : Rows
    left_out : bool array of shape (n_members, n_rows)
        Training rows that a member does not learn from.
    judged : bool array of shape (n_members, n_rows)
        Those of them that it judges, if it has seen neither a copy nor a row of the group.
    validation : Rows or None
    parameters : Parameters
        With nothing left to "auto".
    seed : int
        For random subsets (``post_size``).
    """

    model: SetConvModel
    train: Rows
    left_out: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    validation: Rows | None
    parameters: Parameters
    seed: int

    def represented(self, draw: int = 0) -> SetConvModel:
        """Post-training (section 3.1): representatives from all rows or from a random subset.

        A member's own rows only. The subset depends on the seed and ``draw`` alone, so that a
        resumed run has the same.
        """
        rows, left_out = self.train, self.left_out
        if self.parameters.post_size is not None:
            left_out = self._all_but_subsets(self.parameters.post_size, draw)
            used = np.flatnonzero(~left_out.all(axis=0))
            rows, left_out = rows.take(used), left_out[:, used]
        model = self.model.without_rows()
        model = model.with_rows(rows.features, rows.codes, rows.weights, left_out)
        if model.linear is None:
            return model
        # The linear part has its share by the rows that a member left out, if it did; forward in
        # time by its own, for judges are to know nothing of later ones, and be like the others.
        n_rows = len(self.train.codes)
        some = np.arange(0, n_rows, -(-n_rows // _SCALING_ROWS))
        counted = (self.left_out if self.train.moments is None else ~self.left_out)[:, some]
        counted = np.where(counted.sum(axis=1, keepdims=True) > 1, counted, True)
        share = self.parameters.linear_share
        return model.with_linear_share(self.train.features[some], share, counted)

    def _all_but_subsets(self, size: int, draw: int) -> NDArray[np.bool_]:
        """Return which rows are not in the random subset of each member's own."""
        rng = np.random.default_rng([self.seed, draw])
        kept_out = np.ones_like(self.left_out)
        for member, left_out in zip(kept_out, self.left_out, strict=True):
            own = np.flatnonzero(~left_out)
            member[own[_ratio_preserving(self.train.codes[own], size, rng)]] = False
        return kept_out

    def evaluate(self, step: int) -> float:
        """Return the monitored figure on the validation rows."""
        assert self.validation is not None
        scores = self.represented(step).scores(self.validation.features)
        return monitored_figure(self.parameters.monitor, scores, self.validation.codes)

    def check_confidence(self, objective: Objective) -> None:
        """Say before training what a confidence needs that the rows cannot give."""
        if objective.confidence is None:
            return
        rows, why = self.train, None
        if len(self.left_out) > 1:
            rows = rows.take(np.flatnonzero(self._wholly_left_out().any(axis=0)))
            why = f"{objective}: {self._doubt}" if self._doubt else None
        elif self.validation is not None:
            rows = self.validation.take(np.flatnonzero(self.validation.weights))
            if self.parameters.early_stopping:
                why = f"{objective}: the validation rows choose the weights. Give members instead."
        if why is None and objective.kind == "recall":
            rare = rarest(np.bincount(self.train.codes))
            own = rows.codes == (rare if objective.target is None else objective.target)
            size = effective_size(rows.weights[own])
            if rows.units is not None:
                size = len(np.unique(rows.units[own]))
            why = too_few_rows(objective, size)
        if why is not None:
            raise ParameterError(why, parameter="objective")

    @property
    def _doubt(self) -> str:
        """Why no confidence can be stated on out-of-fold rows."""
        if self.train.moments is not None:
            return FORWARD
        return "" if self.train.crossing is None else SHARED

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
        if len(self.left_out) == 1:
            return model, self._score_validation(model, labels, seed)
        raw = model.member_scores(self.train.features)
        # Forward in time members leave out other shares of the rows, and what was learned scores
        # further apart: each is put on the scale of what it has not seen.
        model = model.aligned(raw, None if self.train.moments is None else self.left_out)
        left_out = self._wholly_left_out()
        rows = np.flatnonzero(left_out.any(axis=0))
        judged, left_out = self.train.take(rows), left_out[:, rows]
        counts = np.bincount(judged.codes, minlength=len(labels))
        evidence = OutOfFoldScores(
            scores=model.average(raw[rows], left_out),
            codes=judged.codes,
            weights=judged.weights,
            n_classes=len(labels),
            units=judged.units,
        )
        return model, UnseenRows(
            evidence=evidence.evened(),
            source="out_of_fold",
            unjudged=_never_left_out(self.train, counts, labels),
            left_out=left_out,
            rows=judged.numbers,
            doubt=self._doubt,
        )

    def _wholly_left_out(self) -> NDArray[np.bool_]:
        """Return which rows each member judges, having seen no copy and no row of the group."""
        wholly = self.judged.copy()
        known = [ties for ties in (self.train.units, self.train.crossing) if ties is not None]
        for ties in known:
            for member, out in zip(wholly, self.left_out, strict=True):
                learned = np.bincount(ties, weights=~out) > 0
                member &= ~learned[ties]
        return wholly

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
        return UnseenRows(
            evidence=evidence.evened(),
            source="none" if self.parameters.early_stopping else "validation",
            unjudged=dict.fromkeys(absent, why),
            left_out=folds == np.arange(_VALIDATION_FOLDS)[:, None],
        )


def _ratio_preserving(
    codes: NDArray[np.int64], size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random subset of rows in the class ratio, at least one row a class."""
    _, numbers, counts = np.unique(codes, return_inverse=True, return_counts=True)
    places = share_out(counts, max(len(counts), min(size, len(codes))))
    return draw_by_class(numbers, places, rng)


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
    counts = np.bincount(codes, minlength=len(labels))
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
    run: TrainingRun, seed: int, resume_from: str | Path | None
) -> CheckpointPlan:
    """Say where checkpoints go, and which run they belong to."""
    parameters, model = run.parameters, run.model
    if parameters.checkpoint_dir is None and resume_from is None:
        return CheckpointPlan()
    trained = sorted((k, v) for k, v in vars(parameters).items() if k not in _NOT_TRAINED)
    digest = hashlib.blake2b(repr((trained, seed)).encode(), digest_size=20)
    both = [rows for rows in (run.train, run.validation) if rows is not None]
    arrays = [model.anchors, np.asarray(model.offset), run.left_out]
    arrays += [tensor.cpu().numpy() for tensor in model.network.state_dict().values()]
    arrays += [array for rows in both for array in (rows.codes, rows.weights)]
    arrays += [row_keys(rows.features) for rows in both]
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    folder = None if parameters.checkpoint_dir is None else Path(parameters.checkpoint_dir)
    return CheckpointPlan(folder, resume_from, digest.hexdigest())
