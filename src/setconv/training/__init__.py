"""Episodic training: where rows come from, the loop, what may watch it, and checkpoints."""

from setconv.training.callbacks import Callback, ProgressBar, TrainingState
from setconv.training.optimizer import TrainingSettings

__all__ = ["Callback", "ProgressBar", "TrainingSettings", "TrainingState"]
