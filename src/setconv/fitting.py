"""One fit from arrays to a model: scale, anchor, build, train, represent."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setconv.anchors import compute_anchors
from setconv.episodes import share_out
from setconv.errors import ParameterError
from setconv.heads import HeadEpisodes, count_heads, head_sides, side_weights
from setconv.metrics import Report
from setconv.model import SetConvModel
from setconv.nn import SetConvNetwork
from setconv.parameters import FitParameters
from setconv.scaling import Scaler, fit_scaler
from setconv.training.callbacks import Callback, TrainingState
from setconv.training.loop import CheckpointPlan, Trainer
from setconv.training.loss import EpisodeLoss
from setconv.training.settings import TrainingSettings
from setconv.training.validation import monitored_figure, report_scores

logger = logging.getLogger("setconv")
ReportSource = Literal["validation", "training"]
_REPORT_ROWS = 20_000  # training rows that the report is made from when there are no others


@dataclass(frozen=True)
class Rows:
    """Rows with their class numbers and weights."""

    features: NDArray[Any]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return the chosen rows."""
        return Rows(self.features[chosen], self.codes[chosen], self.weights[chosen])


@dataclass(frozen=True)
class FitResult:
    """What a fit leaves: the model, how training went, and metrics with where they are from."""

    model: SetConvModel
    state: TrainingState
    report: Report
    report_source: ReportSource


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
    warm: Mapping[str, Tensor] | None = None,
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
    warm : mapping of str to Tensor, optional
        Weights to start from instead of fresh ones; they are copied.
    callbacks : sequence of Callback
    resume_from : path, optional
        Folder of a checkpoint of the same fit.
    """
    n_classes = len(classes)
    init_seed, episode_seed, dropout_seed, anchor_seed, post_seed = (
        int(number) for number in np.random.SeedSequence(seed).generate_state(5)
    )
    device = resolve_device(parameters.device)
    settings = parameters.training_settings(len(train.codes))
    scaler = fit_scaler(parameters.scaling, parameters.clip, train.features, train.weights)
    anchors = compute_anchors(
        parameters.anchor,
        train.features,
        head_sides(train.codes, n_classes),
        train.weights,
        np.random.default_rng(anchor_seed),
    )
    network = build_network(parameters, train.features.shape[1], n_classes, init_seed)
    if warm is not None:
        _start_from(network, warm)
    network.to(device)
    episodes = HeadEpisodes(
        train.codes,
        n_classes,
        sharing=parameters.heads,
        support_size=parameters.support_size,
        n_queries=parameters.n_queries,
        n_episodes=parameters.n_episodes,
        query_source=parameters.query_source,
        random_state=episode_seed,
    )
    loss = EpisodeLoss.build(episodes.layout, side_weights(class_weights), device)
    model = SetConvModel(network, scaler, anchors, n_classes, loss.offset.flatten().tolist())
    bench = _Bench(
        model,
        replace(train, features=scaler(train.features)),
        validation and replace(validation, features=scaler(validation.features)),
        parameters,
        post_seed,
    )
    uniform = bool((train.weights == train.weights[0]).all())
    trainer = Trainer(
        network,
        torch.from_numpy(bench.train.features).to(device),
        model.scaled_anchors(),
        episodes,
        loss,
        settings,
        seed=dropout_seed,
        row_weights=None if uniform else torch.from_numpy(train.weights).float().to(device),
        evaluate=None if validation is None else bench.evaluate,
        restore_best=parameters.early_stopping,
        callbacks=callbacks,
        checkpoints=_plan_checkpoints(parameters, settings, bench, seed, resume_from),
    )
    logger.info(
        "Fitting %d rows of %d features in %d classes: %d steps on %s.",
        *train.features.shape,
        n_classes,
        settings.max_steps,
        device,
    )
    state = trainer.run()
    logger.info("Took %d steps; the last training loss is %.4f.", state.step, state.loss)
    bench.represent()
    model.sums = bench.model.sums
    return FitResult(model, state, *bench.judge(classes))


def build_network(
    parameters: FitParameters, n_features: int, n_classes: int, seed: int
) -> SetConvNetwork:
    """Make a network with fresh weights."""
    return SetConvNetwork(
        n_features,
        n_heads=count_heads(n_classes),
        encoder=parameters.encoder,
        out_features=parameters.out_features,
        hidden=parameters.hidden,
        output=parameters.output,
        similarity=parameters.similarity,
        temperature=parameters.temperature,
        dropout=parameters.dropout,
        input_dropout=parameters.input_dropout,
        share_encoder=parameters.heads == "shared",
        generator=torch.Generator().manual_seed(seed),
    )


def _start_from(network: SetConvNetwork, weights: Mapping[str, Tensor]) -> None:
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ParameterError(
            "warm_start=True, but the network's parameters (encoder, out_features, hidden, output, "
            "similarity, heads) are not those of the last fit: set warm_start=False to start anew."
        ) from error


class _Bench:
    """The network in training, seen as a model of rows that are scaled already."""

    def __init__(
        self,
        model: SetConvModel,
        train: Rows,
        validation: Rows | None,
        parameters: FitParameters,
        seed: int,
    ) -> None:
        anchors = model.scaled_anchors().double().cpu().numpy()
        self.model = SetConvModel(model.network, Scaler(), anchors, model.n_classes, model.offset)
        self.train = train
        self.validation = validation
        self._parameters = parameters
        self._seed = seed

    def represent(self, draw: int = 0) -> None:
        """Post-training (section 3.1): representatives from all rows or from a random subset.

        The subset depends on the seed and ``draw`` alone, so that a resumed run has the same.
        """
        rows = self.train
        if self._parameters.post_size is not None:
            rng = np.random.default_rng([self._seed, draw])
            rows = rows.take(_ratio_preserving(rows.codes, self._parameters.post_size, rng))
        self.model.reset_representatives()
        self.model.add_rows(rows.features, rows.codes, rows.weights, self._parameters.batch_size)

    def evaluate(self, step: int) -> float:
        """Return the monitored figure on the validation rows."""
        if self.validation is None:
            raise RuntimeError("there are no validation rows to look at")
        self.represent(step)
        scores = self.model.scores(self.validation.features, self._parameters.batch_size)
        return monitored_figure(self._parameters.monitor, scores, self.validation.codes)

    def judge(self, classes: NDArray[Any]) -> tuple[Report, ReportSource]:
        """Report on the validation rows, or else on (at most `_REPORT_ROWS`) training rows."""
        rows = self.validation
        if rows is None:
            rows = self.train.take(np.arange(0, len(self.train.codes), self._report_stride))
        scores = self.model.scores(rows.features, self._parameters.batch_size)
        source: ReportSource = "training" if self.validation is None else "validation"
        return report_scores(scores, rows.codes, classes), source

    @property
    def _report_stride(self) -> int:
        return -(-len(self.train.codes) // _REPORT_ROWS)


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


def _plan_checkpoints(
    parameters: FitParameters,
    settings: TrainingSettings,
    bench: _Bench,
    seed: int,
    resume_from: str | Path | None,
) -> CheckpointPlan:
    """Say where checkpoints go, and which run they belong to."""
    if parameters.checkpoint_dir is None and resume_from is None:
        return CheckpointPlan()
    digest = hashlib.blake2b(digest_size=20)
    # Where and how often a checkpoint is written does not change the result.
    run = replace(parameters, checkpoint_dir=None, checkpoint_every=1, anchor=None, batch_size=1)
    digest.update(repr((run, settings.max_steps, seed)).encode())
    arrays = [bench.model.anchors, np.asarray(bench.model.offset)]
    arrays += [tensor.cpu().numpy() for tensor in bench.model.network.state_dict().values()]
    for rows in (bench.train, bench.validation):
        if rows is not None:
            arrays += [rows.features, rows.codes, rows.weights]
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).data)
    folder = None if parameters.checkpoint_dir is None else Path(parameters.checkpoint_dir)
    return CheckpointPlan(folder, resume_from, digest.hexdigest())
