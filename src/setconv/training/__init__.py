"""Episodic training: settings, loss, loop, callbacks, checkpoints."""

from setconv.training.callbacks import Callback, ProgressBar, TrainingState
from setconv.training.optimizer import TrainingSettings

__all__ = ["Callback", "ProgressBar", "TrainingSettings", "TrainingState"]
