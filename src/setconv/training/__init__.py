"""Episodic training: where rows come from, the loop, what may watch it, and checkpoints."""

from setconv.training.checkpoint import TrainingState
from setconv.training.loop import Callback, ProgressBar
from setconv.training.optimizer import TrainingSettings

__all__ = ["Callback", "ProgressBar", "TrainingSettings", "TrainingState"]
