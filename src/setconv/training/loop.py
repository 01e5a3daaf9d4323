"""Episodic training: what may watch it, where its rows come from, the loop, and the loss.

The loop is small named verbs: draw, score, step, record, look, checkpoint. `Trainer` takes the
steps, a feed gives the rows, `EpisodeLoss` is what they lower, and `threads_for` keeps small steps
on one thread.
"""

from __future__ import annotations

import copy
import logging
import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch.nn import functional
from tqdm.auto import tqdm

from setconv.data import Matrix
from setconv.episodes import EpisodeBatches, Layout
from setconv.errors import DivergedError
from setconv.messages import is_shown
from setconv.nn.network import SetConvNetwork
from setconv.preprocessing import Scaler
from setconv.training.checkpoint import (
    Checkpoint,
    CheckpointPlan,
    TrainingState,
    read_checkpoint,
    set_aside,
)
from setconv.training.optimizer import Adam, TrainingSettings

logger = logging.getLogger("setconv")
Drawn: TypeAlias = NDArray[np.int64]
Batch: TypeAlias = tuple[Drawn, Tensor]
Progress = Literal["auto"] | bool
LOOKS = 20  # at the validation rows in a whole run
CHECKPOINT_EVERY = 100  # steps
_RECORDS = 100  # records of the loss in a whole run
_AHEAD = 2  # batches that are read or waiting while a step is computed


class Callback:
    """Base class of callbacks: override what you need.

    Examples
    --------
    >>> class StopAt(Callback):
    ...     def on_step_end(self, state):
    ...         state.stop = state.step >= 10
    """

    def on_fit_begin(self, state: TrainingState) -> None:
        """Run before the first step, or the first after resuming."""

    def on_step_end(self, state: TrainingState) -> None:
        """Run after each step."""

    def on_record(self, state: TrainingState) -> None:
        """Run after a record was added to ``state.history``."""

    def on_fit_end(self, state: TrainingState) -> None:
        """Run after the last step, also when training ends with an error."""


class ProgressBar(Callback):
    """A bar on standard error with the loss and the time left."""

    def __init__(self) -> None:
        self._bar: Any = None

    def on_fit_begin(self, state: TrainingState) -> None:
        """Open the bar."""
        self._bar = tqdm(total=state.max_steps, initial=state.step, unit="step", desc="SetConv")

    def on_step_end(self, state: TrainingState) -> None:  # noqa: ARG002 (the interface)
        """Move the bar."""
        self._bar.update(1)

    def on_record(self, state: TrainingState) -> None:
        """Show the loss."""
        last = state.history[-1]
        shown = {name: last[name] for name in ("loss", "validation") if name in last}
        self._bar.set_postfix(shown, refresh=False)

    def on_fit_end(self, state: TrainingState) -> None:  # noqa: ARG002 (the interface)
        """Close the bar."""
        self._bar.close()


def gather_callbacks(callbacks: Sequence[Callback], progress: Progress) -> list[Callback]:
    """Return the user's callbacks, and a progress bar if wanted; "auto" is on a terminal."""
    return [*callbacks, ProgressBar()] if is_shown(progress) else list(callbacks)


class Feed:
    """Rows as the members see them: arrays are scaled at once, others when they are drawn.

    Those on disk are read, and sparse ones made dense, while the step before them is computed.

    Parameters
    ----------
    features : Matrix
    scaler : Scaler
        Member ``m`` takes view ``m`` modulo their number.
    device : torch.device
    n_members : int
    """

    def __init__(
        self, features: Matrix, scaler: Scaler, device: torch.device, n_members: int
    ) -> None:
        self._features, self._scaler = features, scaler
        self.device, self._n_members = device, n_members
        self._in_memory: Tensor | None = None
        if isinstance(features, np.ndarray):
            self._in_memory = self._scaled(slice(None)).to(device)

    def batches(self, draws: Iterator[Drawn]) -> Generator[Batch]:
        """Yield each draw of row numbers (groups, episodes, rows) with its rows.

        The rows are (..., n_inputs); each member's are in its own view. Close the iterator to end.
        """
        if self._in_memory is not None:
            for drawn in draws:
                yield drawn, pick_rows(self._in_memory, drawn, self._n_members)
            return
        # Draws are made in the caller's thread, in their order: they stay deterministic.
        with ThreadPoolExecutor(1, thread_name_prefix="setconv-prefetch") as worker:
            waiting = deque(worker.submit(self._read, one) for one in islice(draws, _AHEAD))
            while waiting:
                drawn, rows = waiting.popleft().result()
                waiting.extend(worker.submit(self._read, one) for one in islice(draws, 1))
                yield drawn, rows.to(self.device)

    def _read(self, drawn: Drawn) -> Batch:
        places = np.arange(drawn.size).reshape(drawn.shape)
        return drawn, pick_rows(self._scaled(drawn.ravel()), places, self._n_members)

    def _scaled(self, which: slice | Drawn) -> Tensor:
        rows = self._features[which]
        return torch.from_numpy(self._scaler(rows.toarray() if issparse(rows) else rows))


def pick_rows(scaled: Tensor, places: Drawn, n_members: int) -> Tensor:
    """Return rows of (n_views, n_rows, n_inputs) by their places (groups, episodes, rows).

    The groups are the members, or separate heads of all of them, and each member's rows are in its
    view.
    """
    n_views, n_rows, n_inputs = scaled.shape
    if n_views > 1:
        heads = len(places) // n_members
        view = np.arange(len(places)) // heads % n_views
        places = places + n_rows * view.reshape(-1, 1, 1)
    where = torch.from_numpy(places.reshape(-1)).to(scaled.device)
    # One copy a row: several times as fast as indexing by several numbers.
    return scaled.view(-1, n_inputs).index_select(0, where).view(*places.shape, -1)


@dataclass
class Trainer:
    """Episodic training of a network (section 3.1 of the paper).

    Parameters
    ----------
    network : SetConvNetwork
        Trained in place.
    feed : Feed
        Gives the drawn rows, on the network's device.
    anchors : Tensor of shape (heads, n_anchors, n_features)
    episodes : EpisodeBatches
    loss : EpisodeLoss
    settings : TrainingSettings
    seed : int
        Drives dropout.
    row_weights : Tensor of shape (n_rows,), optional
    evaluate : callable, optional
        From the step to the monitored figure on the validation rows, higher is better.
    restore_best : bool, default=False
        Whether to stop by ``settings.patience`` and end with the best weights.
    callbacks : sequence of Callback
    checkpoints : CheckpointPlan
    """

    network: SetConvNetwork
    feed: Feed
    anchors: Tensor
    episodes: EpisodeBatches
    loss: EpisodeLoss
    settings: TrainingSettings
    seed: int
    row_weights: Tensor | None = None
    evaluate: Callable[[int], float] | None = None
    restore_best: bool = False
    callbacks: Sequence[Callback] = ()
    checkpoints: CheckpointPlan = field(default_factory=CheckpointPlan)
    _best_weights: dict[str, Tensor] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Start at step 0."""
        self.state = TrainingState(self.settings.max_steps)
        self.optimizer = Adam(self.network, self.settings)
        self._dropout = torch.Generator(device=self.feed.device)
        self._loss_sum = torch.zeros((), device=self.feed.device)  # since the last record

    def run(self) -> TrainingState:
        """Train to the end, or until something says stop."""
        if self.checkpoints.resume_from is not None:
            self._resume(self.checkpoints.resume_from)
        elif self.checkpoints.folder is not None:
            # The first one is written at once: a folder that cannot be used is found out now.
            set_aside(self.checkpoints.folder)
            self._checkpoint(self._best_weights).write(self.checkpoints.folder)
        self._notify("on_fit_begin")
        draws = (self.episodes.draw() for _ in range(self.state.step, self.settings.max_steps))
        try:
            with threads_for(self._operations()), closing(self.feed.batches(draws)) as batches:
                while self.state.step < self.settings.max_steps and not self.state.stop:
                    self._take_step(*next(batches))
        except KeyboardInterrupt:
            if self.checkpoints.folder is not None:
                logger.warning(
                    "Interrupted after step %d; go on with fit(..., resume_from=%r).",
                    self.state.step,
                    str(self.checkpoints.folder),
                )
            raise
        finally:
            self._notify("on_fit_end")
        if self.restore_best and self._best_weights:
            self.network.load_state_dict(self._best_weights)
        return self.state

    def _operations(self) -> float:
        """Return about how many operations the products of one episode take, all members."""
        weights = sum(one.numel() for one in self.network.parameters())
        # Forward, and backward to the weights and to the rows; a product is also a sum.
        return 6.0 * weights * self.loss.average.shape[-1]

    def _take_step(self, drawn: Drawn, rows: Tensor) -> None:
        """Draw, score, step; then record, look at the validation rows and checkpoint when due."""
        state, settings = self.state, self.settings
        loss = self._score_episodes(drawn, rows)
        loss.backward()
        self.optimizer.step(state.step)
        state.step += 1
        self._loss_sum += loss.detach()
        last = state.step == settings.max_steps
        due = last or state.step % math.ceil(settings.max_steps / LOOKS) == 0
        look = self.evaluate is not None and due
        if look or last or state.step % max(1, settings.max_steps // _RECORDS) == 0:
            self._record(look=look)
        self._notify("on_step_end")
        # A checkpoint is taken after the record, so that a resumed run has the same history.
        if self.checkpoints.folder is not None and (
            last or state.stop or state.step % CHECKPOINT_EVERY == 0
        ):
            self._checkpoint(self._best_weights).write(self.checkpoints.folder)

    def _score_episodes(self, drawn: Drawn, rows: Tensor) -> Tensor:
        """Return the loss of the drawn episodes."""
        generator = None
        if self.network.dropout or self.network.input_dropout:
            generator = self._dropout.manual_seed(_step_seed(self.seed, self.state.step))
        support_weights = query_weights = None
        if self.row_weights is not None:
            weights = self.row_weights[torch.from_numpy(drawn).to(self.row_weights.device)]
            weights = weights.repeat_interleave(self.network.n_stacked // len(weights), dim=0)
            # With "leave_one_out" the support set and the queries are the same columns.
            support_weights = weights[..., : self.loss.average.shape[-1]]
            query_weights = weights[..., -self.loss.target.shape[-1] :]
        average = self.loss.support_average(support_weights)
        progress = self.state.step / self.settings.max_steps
        margin = self.network(rows, self.anchors, average, generator, progress)
        return self.loss(margin, query_weights)

    def _record(self, *, look: bool) -> None:
        """Add the loss, and a look at the validation rows when due, to the history."""
        state = self.state
        recorded = state.history[-1]["step"] if state.history else 0
        state.loss = float(self._loss_sum) / (state.step - recorded) / self.network.n_members
        if not math.isfinite(state.loss):
            raise DivergedError(
                f"The training loss is {state.loss} at step {state.step}: lower lr "
                f'(now {self.settings.lr}), or scale the inputs (scaling="standard").'
            )
        self._loss_sum.zero_()
        lr = self.optimizer.lr_at(state.step - 1)
        state.history.append({"step": state.step, "loss": state.loss, "lr": lr})
        if look and self.evaluate is not None:
            if not state.look(self.evaluate(state.step)):
                state.stop = state.stop or self._out_of_patience()
            elif self.restore_best:
                self._best_weights = copy.deepcopy(self.network.state_dict())
        self._notify("on_record")

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience if self.restore_best else None
        return patience is not None and self.state.looks_since_best >= patience

    def _notify(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self.state)

    def _checkpoint(self, best: Mapping[str, Tensor]) -> Checkpoint:
        sections = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state(),
            "best": best,
            "loss": {"sum": self._loss_sum},
        }
        return Checkpoint(self.checkpoints.fingerprint, self.state, sections)

    def _resume(self, folder: str | Path) -> None:
        form = self.network.state_dict() if self.restore_best else {}
        saved = read_checkpoint(folder, self._checkpoint(form))
        self.network.load_state_dict(saved.sections["network"])
        self.optimizer.load_state(saved.sections["optimizer"])
        self._loss_sum.copy_(saved.sections["loss"]["sum"])
        self._best_weights = dict(saved.sections["best"])
        self.state = saved.state
        self.state.stop = self._out_of_patience()  # what a callback decided is not carried over
        self.episodes.skip(saved.state.step)


def _step_seed(seed: int, step: int) -> int:
    """Return a seed for one step of one run."""
    state: np.uint64 = np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0]
    return int(state >> np.uint64(1))


class EpisodeLoss:
    """Cross-entropy of equations 5-6 over the queries, all heads summed.

    Parameters
    ----------
    layout : Layout
    side_weight : array of shape (heads, 2)
        Weight of the two sides, summing to one.
    device : torch.device

    Attributes
    ----------
    average : Tensor of shape (heads, 1, 2, support)
        Averages the support rows of each side of each head.
    target : Tensor of shape (heads, 1, queries)
        +1 or -1.
    offset : Tensor of shape (heads, 1, 1)
        Log-ratio of the side weights: what unequal class weights add to the margin, here and in
        predictions, so that a weight moves the decision by exactly its logarithm.
    """

    def __init__(
        self, layout: Layout, side_weight: NDArray[np.float64], device: torch.device
    ) -> None:
        tensors = (torch.from_numpy(one).to(device).unsqueeze(1) for one in layout)
        self.average, self.target, self._sides = tensors
        weight = torch.as_tensor(side_weight, dtype=torch.float32, device=device)
        self.offset = (weight[:, 1] / weight[:, 0]).log().view(-1, 1, 1)
        self._side_weight = weight
        # What each query counts, (heads, 1, queries), where rows have no weights of their own.
        self._query_weights = (weight.view(-1, 1, 2, 1) * self._sides).sum(dim=-2)

    def support_average(self, row_weights: Tensor | None) -> Tensor:
        """Return the support averages; row weights (heads, episodes, support) join in."""
        if row_weights is None:
            return self.average
        weighted = self.average * row_weights.unsqueeze(-2)
        return weighted / weighted.sum(dim=-1, keepdim=True)

    def __call__(self, margin: Tensor, row_weights: Tensor | None) -> Tensor:
        """Return the loss of margins (heads, episodes, queries), averaged over the episodes.

        Parameters
        ----------
        margin : Tensor of shape (heads, episodes, queries)
        row_weights : Tensor of shape (heads, episodes, queries), optional
            Weights of the queries; within a side only their ratio matters.
        """
        # Two-class cross-entropy is softplus of the negative margin of the true side.
        losses = functional.softplus(-self.target * (margin + self.offset))
        if row_weights is None:
            return (self._query_weights * losses).sum() / margin.shape[1]
        weighted = self._sides * row_weights.unsqueeze(-2)
        by_side = (weighted * losses.unsqueeze(-2)).sum(dim=(1, 3)) / weighted.sum(dim=(1, 3))
        return (self._side_weight * by_side).sum()


# Multiplications and additions of one episode. Threads that share a step wait for each other after
# every operation: below this, one that the machine has put aside costs far more than it saves.
_WORTH_SHARING = 2e8


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Work with one thread while steps of so many operations are taken, then as before.

    The number of threads follows the shapes alone, so that results do not depend on how busy the
    machine is.
    """
    before = torch.get_num_threads()
    if operations < _WORTH_SHARING:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
