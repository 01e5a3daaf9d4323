"""One fit from arrays to a model: scale, anchor, build, train, represent, decide."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setconv.anchors import compute_anchors
from setconv.bench import Bench
from setconv.discriminant import fit_discriminants
from setconv.errors import ParameterError
from setconv.feeds import open_feed
from setconv.folds import leave_out
from setconv.heads import ABSENT, count_heads, head_sides, side_weights
from setconv.judging import Judgement, check_objective, judge
from setconv.layout import HeadEpisodes
from setconv.model import SetConvModel
from setconv.nn import SetConvNetwork
from setconv.parameters import FitParameters, Plan
from setconv.rows import Rows, arrays_of
from setconv.scaling import fit_scaler
from setconv.seeing import see_rows
from setconv.sparse import as_sparse, fit_lines
from setconv.training.callbacks import Callback, TrainingState
from setconv.training.loop import CheckpointPlan, Trainer
from setconv.training.loss import EpisodeLoss

logger = logging.getLogger("setconv")


@dataclass(frozen=True)
class FitResult:
    """What a fit leaves: the model, how training went, decisions and how good they are."""

    model: SetConvModel
    state: TrainingState
    judgement: Judgement


def resolve_device(device: str) -> torch.device:
    """Return the device; "auto" is CUDA where there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(f"device={device!r} cannot be used here: {error}") from error
    return resolved


def fit_model(
    parameters: FitParameters,
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
    parameters : FitParameters
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
    seeds = (int(number) for number in np.random.SeedSequence(seed).generate_state(8))
    init_seed, episode_seed, dropout_seed, anchor_seed, post_seed, fold_seed, rule_seed, *more = (
        seeds
    )
    seen = see_rows(parameters.scaling, train, more[0])
    n_rows, n_inputs = seen.features.shape
    plan = parameters.settle(
        n_rows, seen.kind_of_width, n_groups, n_classes=n_classes, has_lines=seen.has_lines
    )
    n_members = plan.n_members
    evidence = n_members > 1 or validation is not None
    check_objective(parameters.objective, classes, has_evidence=evidence)
    device = resolve_device(parameters.device)
    left_out = leave_out(train.codes, n_members, train.units, fold_seed)
    views = seen.choose_views(parameters.scaling, n_members)
    scaler = fit_scaler(views, parameters.clip, seen.features, train.weights_once)
    dense = replace(train, features=seen.features)
    anchors = _member_anchors(parameters, dense, n_classes, left_out, anchor_seed)
    width = scaler.width(n_inputs)
    network = build_network(parameters, plan, width, n_classes, init_seed)
    network.to(device)
    episodes = HeadEpisodes(
        train.codes,
        n_classes,
        members=[np.flatnonzero(~out) for out in left_out],
        sharing=parameters.heads,
        support_size=parameters.support_size,
        n_queries=parameters.n_queries,
        n_episodes=plan.n_episodes,
        query_source=parameters.query_source,
        random_state=episode_seed,
    )
    sides = np.tile(side_weights(class_weights), (n_members, 1))
    loss = EpisodeLoss.build(episodes.layout, sides, device)
    offset = loss.offset.flatten()[: count_heads(n_classes)].tolist()
    model = SetConvModel(network, scaler, anchors, n_classes, offset, front=seen.front)
    feed = open_feed(seen.features, scaler, device, n_members)
    if plan.linear_share > 0:
        known = (train.codes, train.weights, left_out, n_classes)
        model.discriminants = (
            fit_lines(as_sparse(train.features), *known)
            if seen.has_lines
            else fit_discriminants(feed.chunks(), *known)
        )
    bench = Bench(model, train, left_out, validation, parameters, plan.linear_share, post_seed)
    uniform = bool((train.weights == train.weights[0]).all())
    trainer = Trainer(
        network,
        feed,
        model.scaled_anchors(),
        episodes,
        loss,
        plan.settings,
        seed=dropout_seed,
        row_weights=None if uniform else torch.from_numpy(train.weights).float().to(device),
        evaluate=None if validation is None else bench.evaluate,
        restore_best=parameters.early_stopping,
        callbacks=callbacks,
        checkpoints=_plan_checkpoints(parameters, bench, seed, resume_from),
    )
    logger.info(
        "Fitting %d rows of %d features in %d classes: %d members, %d steps on %s.",
        *train.features.shape,
        n_classes,
        n_members,
        plan.settings.max_steps,
        device,
    )
    state = trainer.run()
    logger.info("Took %d steps; the last training loss is %.4f.", state.step, state.loss)
    bench.represent()
    judgement = judge(bench, classes, class_weights, parameters.objective, rule_seed, notes)
    return FitResult(model, state, judgement)


def _member_anchors(
    parameters: FitParameters,
    train: Rows,
    n_classes: int,
    left_out: NDArray[np.bool_],
    seed: int,
) -> NDArray[np.float64]:
    """Make the anchors of each member from its own rows, (n_stacked, n_anchors, n_features)."""
    rng = np.random.default_rng(seed)
    rules = [parameters.anchor] * len(left_out)
    heads = count_heads(n_classes)
    given = parameters.anchor
    if isinstance(given, np.ndarray) and given.ndim == 3 and len(given) == len(left_out) * heads:
        rules = np.split(given, len(left_out))  # one each, as saved
    found = []
    for out, rule in zip(left_out, rules, strict=True):
        sides = np.where(out, np.int8(ABSENT), head_sides(train.codes, n_classes))
        found.append(compute_anchors(rule, train.features, sides, train.weights, rng))
    most = max(anchors.shape[1] for anchors in found)
    # Where members came to different numbers of anchors, the fewer are repeated in turn.
    return np.concatenate([anchors[:, np.arange(most) % anchors.shape[1]] for anchors in found])


def build_network(
    parameters: FitParameters, plan: Plan, n_inputs: int, n_classes: int, seed: int
) -> SetConvNetwork:
    """Make a network with fresh weights."""
    return SetConvNetwork(
        n_inputs,
        n_heads=count_heads(n_classes),
        n_members=plan.n_members,
        encoder=plan.encoder,
        out_features=plan.out_features,
        hidden=parameters.hidden,
        output=parameters.output,
        similarity=parameters.similarity,
        temperature=parameters.temperature,
        dropout=plan.dropout,
        input_dropout=plan.input_dropout,
        share_encoder=parameters.heads == "shared",
        generator=torch.Generator().manual_seed(seed),
    )


def _plan_checkpoints(
    parameters: FitParameters,
    bench: Bench,
    seed: int,
    resume_from: str | Path | None,
) -> CheckpointPlan:
    """Say where checkpoints go, and which run they belong to."""
    if parameters.checkpoint_dir is None and resume_from is None:
        return CheckpointPlan()
    digest = hashlib.blake2b(digest_size=20)
    # These do not change what is trained, or show in the arrays.
    run = replace(
        parameters,
        checkpoint_dir=None,
        checkpoint_every=1,
        anchor=None,
        batch_size=1,
        objective=None,
    )
    digest.update(repr((run, seed)).encode())
    arrays = [bench.model.anchors, np.asarray(bench.model.offset), bench.left_out]
    arrays += [tensor.cpu().numpy() for tensor in bench.model.network.state_dict().values()]
    for rows in (bench.train, bench.validation):
        if rows is not None:
            arrays += [rows.codes, rows.weights]
    features = [arrays_of(rows.features) for rows in (bench.train, bench.validation) if rows]
    for array in chain(arrays, *features):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    folder = None if parameters.checkpoint_dir is None else Path(parameters.checkpoint_dir)
    return CheckpointPlan(folder, resume_from, digest.hexdigest())
