"""The training loop as small named verbs: draw, score, step, record, look, checkpoint.

`Trainer` takes the steps, `EpisodeLoss` is what they lower, and `threads_for` keeps small ones on
one thread.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from setconv.episodes import EpisodeBatches, Layout
from setconv.errors import CheckpointError, DivergedError
from setconv.nn.network import SetConvNetwork
from setconv.training.batches import Drawn, Feed
from setconv.training.callbacks import Callback, TrainingState
from setconv.training.checkpoint import Checkpoint, CheckpointPlan, read_checkpoint, set_aside
from setconv.training.optimizer import Adam, TrainingSettings, lr_factor

logger = logging.getLogger("setconv")
LOOKS = 20  # at the validation rows in a whole run
CHECKPOINT_EVERY = 100  # steps
_RECORDS = 100  # records of the loss in a whole run


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

    def __init__(
        self,
        network: SetConvNetwork,
        feed: Feed,
        anchors: Tensor,
        episodes: EpisodeBatches,
        loss: EpisodeLoss,
        settings: TrainingSettings,
        *,
        seed: int,
        row_weights: Tensor | None = None,
        evaluate: Callable[[int], float] | None = None,
        restore_best: bool = False,
        callbacks: Sequence[Callback] = (),
        checkpoints: CheckpointPlan | None = None,
    ) -> None:
        self.network = network
        self.feed = feed
        self.anchors = anchors
        self.episodes = episodes
        self.loss = loss
        self.settings = settings
        self.seed = seed
        self.row_weights = row_weights
        self.evaluate = evaluate
        self.restore_best = restore_best and evaluate is not None
        self.callbacks = callbacks
        self.checkpoints = checkpoints or CheckpointPlan()
        self.state = TrainingState(settings.max_steps)
        self.optimizer = Adam(network, settings)
        self._dropout = torch.Generator(device=feed.device)
        self._best_weights: dict[str, Tensor] = {}
        self._loss_sum = torch.zeros((), device=feed.device)
        self._loss_count = 0

    def run(self) -> TrainingState:
        """Train to the end, or until something says stop."""
        if self.checkpoints.resume_from is not None:
            self._resume(self.checkpoints.resume_from)
        elif self.checkpoints.folder is not None:
            # The first one is written at once: a folder that cannot be used is found out now.
            set_aside(self.checkpoints.folder)
            self._write_checkpoint(self.checkpoints.folder)
        self._notify("on_fit_begin")
        try:
            with (
                threads_for(self._operations()),
                closing(self.feed.batches(self._draws())) as batches,
            ):
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
        self._set_learning_rate()
        loss = self._score_episodes(drawn, rows)
        self.optimizer.forget_gradients()
        loss.backward()
        self.optimizer.step()
        state.step += 1
        self._loss_sum += loss.detach()
        self._loss_count += 1
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
            self._write_checkpoint(self.checkpoints.folder)

    def _draws(self) -> Iterator[Drawn]:
        """Draw the row numbers of the steps that are left, ([heads,] episodes, rows) each."""
        for _ in range(self.state.step, self.settings.max_steps):
            yield self.episodes.draw()

    def _score_episodes(self, drawn: Drawn, rows: Tensor) -> Tensor:
        """Return the loss of the drawn episodes."""
        generator = None
        if self.network.dropout or self.network.input_dropout:
            generator = self._dropout.manual_seed(_step_seed(self.seed, self.state.step))
        support_weights = query_weights = None
        if self.row_weights is not None:
            weights = self.row_weights[torch.from_numpy(drawn).to(self.row_weights.device)]
            if weights.dim() == 3:
                weights = weights.repeat_interleave(self.network.n_stacked // len(weights), dim=0)
            # With "leave_one_out" the support set and the queries are the same columns.
            support_weights = weights[..., : self.loss.average.shape[-1]]
            query_weights = weights[..., -self.loss.target.shape[-1] :]
        average = self.loss.support_average(support_weights)
        progress = self.state.step / self.settings.max_steps
        margin = self.network(rows, self.anchors, average, generator, progress)
        return self.loss(margin, query_weights)

    def _set_learning_rate(self) -> None:
        settings = self.settings
        factor = lr_factor(settings.schedule, self.state.step, settings.max_steps)
        for group in self.optimizer.groups:
            group.lr = settings.lr_of(group.name) * factor

    def _record(self, *, look: bool) -> None:
        """Add the loss, and a look at the validation rows when due, to the history."""
        state = self.state
        if self._loss_count:
            state.loss = float(self._loss_sum) / self._loss_count / self.network.n_members
        if not math.isfinite(state.loss):
            raise DivergedError(
                f"The training loss is {state.loss} at step {state.step}: lower lr "
                f'(now {self.settings.lr}), or scale the inputs (scaling="standard").'
            )
        self._loss_sum.zero_()
        self._loss_count = 0
        lr = max(group.lr for group in self.optimizer.groups)
        state.history.append({"step": state.step, "loss": state.loss, "lr": lr})
        if look and self.evaluate is not None:
            self._look(self.evaluate(state.step))
        self._notify("on_record")

    def _look(self, score: float) -> None:
        state = self.state
        state.history[-1]["validation"] = score
        if state.best_step is None or score > state.best_score:
            state.best_step, state.best_score, state.looks_since_best = state.step, score, 0
            if self.restore_best:
                self._best_weights = copy.deepcopy(self.network.state_dict())
            return
        state.looks_since_best += 1
        state.stop = state.stop or self._out_of_patience()

    def _out_of_patience(self) -> bool:
        patience = self.settings.patience
        return (
            self.restore_best and patience is not None and self.state.looks_since_best >= patience
        )

    def _notify(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self.state)

    def _write_checkpoint(self, folder: Path) -> None:
        sections = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state(),
            "best": self._best_weights,
            "loss": {"sum": self._loss_sum, "count": torch.tensor(self._loss_count)},
        }
        tensors = {
            f"{section}/{name}": tensor
            for section, named in sections.items()
            for name, tensor in named.items()
        }
        Checkpoint(self.checkpoints.fingerprint, self.state, tensors).write(folder)

    def _resume(self, folder: str | Path) -> None:
        saved = read_checkpoint(folder, self.checkpoints.fingerprint)
        try:
            self.network.load_state_dict(saved.section("network"))
            self.optimizer.load_state(saved.section("optimizer"))
            loss = saved.section("loss")
            self._loss_sum.copy_(loss["sum"])
            self._loss_count = int(loss["count"])
        except (RuntimeError, KeyError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint in {folder} lacks a part ({error}): remove it and fit anew."
            ) from error
        self._best_weights = saved.section("best")
        self.state = saved.state
        self.state.stop = self._out_of_patience()  # what a callback decided is not carried over
        self.episodes.skip(saved.state.step)


def _step_seed(seed: int, step: int) -> int:
    """Return a seed for one step of one run."""
    state: np.uint64 = np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0]
    return int(state >> np.uint64(1))


@dataclass(frozen=True)
class EpisodeLoss:
    """Cross-entropy of equations 5-6 over the queries, all heads summed.

    Attributes
    ----------
    average : Tensor of shape (heads, 1, 2, support)
        Averages the support rows of each side of each head.
    target : Tensor of shape (heads, 1, queries)
        +1 or -1.
    sides : Tensor of shape (heads, 1, 2, queries)
        Averages the queries of each side.
    side_weight : Tensor of shape (heads, 2)
        Weight of the two sides, summing to one.
    offset : Tensor of shape (heads, 1, 1)
        Log-ratio of the side weights: what unequal class weights add to the margin, here and in
        predictions, so that a weight moves the decision by exactly its logarithm.
    """

    average: Tensor
    target: Tensor
    sides: Tensor
    side_weight: Tensor
    offset: Tensor

    @classmethod
    def build(
        cls, layout: Layout, side_weight: NDArray[np.float64], device: torch.device
    ) -> EpisodeLoss:
        """Put the layout of the episodes and the weights of the sides on a device."""
        weight = torch.as_tensor(side_weight, dtype=torch.float32, device=device)
        return cls(
            average=torch.from_numpy(layout.average).to(device).unsqueeze(1),
            target=torch.from_numpy(layout.target).to(device).unsqueeze(1),
            sides=torch.from_numpy(layout.query_sides).to(device).unsqueeze(1),
            side_weight=weight,
            offset=(weight[:, 1] / weight[:, 0]).log().view(-1, 1, 1),
        )

    def support_average(self, row_weights: Tensor | None) -> Tensor:
        """Return the support averages; row weights ([heads,] episodes, support) join in."""
        if row_weights is None:
            return self.average
        weighted = self.average * row_weights.unsqueeze(-2)
        return weighted / weighted.sum(dim=-1, keepdim=True)

    def __call__(self, margin: Tensor, row_weights: Tensor | None) -> Tensor:
        """Return the loss of margins (heads, episodes, queries), averaged over the episodes.

        Parameters
        ----------
        margin : Tensor of shape (heads, episodes, queries)
        row_weights : Tensor of shape ([heads,] episodes, queries), optional
            Weights of the queries; within a side only their ratio matters.
        """
        # Two-class cross-entropy is softplus of the negative margin of the true side.
        losses = functional.softplus(-self.target * (margin + self.offset))
        if row_weights is None:
            return (self._query_weights * losses).sum() / margin.shape[1]
        weighted = self.sides * row_weights.unsqueeze(-2)
        by_side = (weighted * losses.unsqueeze(-2)).sum(dim=(1, 3)) / weighted.sum(dim=(1, 3))
        return (self.side_weight * by_side).sum()

    @cached_property
    def _query_weights(self) -> Tensor:
        """What each query counts, (heads, 1, queries), where rows have no weights of their own."""
        return (self.side_weight.view(-1, 1, 2, 1) * self.sides).sum(dim=-2)


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
