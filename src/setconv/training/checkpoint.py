"""A training run on disk: everything that is needed to go on to the identical result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from setconv.errors import CheckpointError
from setconv.io.files import write_atomically
from setconv.training.callbacks import TrainingState

FILE_NAME = "checkpoint.safetensors"
_FORMAT = 1
logger = logging.getLogger("setconv")


@dataclass(frozen=True)
class CheckpointPlan:
    """Where a run leaves checkpoints and which run it is.

    Attributes
    ----------
    folder : Path or None
        Where to write; None writes none.
    resume_from : str, Path or None
        Where to go on from.
    fingerprint : str
    """

    folder: Path | None = None
    resume_from: str | Path | None = None
    fingerprint: str = ""


@dataclass
class Checkpoint:
    """The state of a run after a whole number of steps.

    The learning rate, the dropout masks and the episodes are functions of the seed and the step,
    so the weights, the optimiser's moments and the step are all there is to keep.

    Attributes
    ----------
    fingerprint : str
        What the run depends on: data, seed and parameters.
    state : TrainingState
    tensors : dict of str to Tensor
        "network/...", "optimizer/...", "best/...".
    """

    fingerprint: str
    state: TrainingState
    tensors: dict[str, Tensor]

    def section(self, name: str) -> dict[str, Tensor]:
        """Return the tensors under ``name/``, without that prefix."""
        prefix = f"{name}/"
        return {
            key.removeprefix(prefix): tensor
            for key, tensor in self.tensors.items()
            if key.startswith(prefix)
        }

    def write(self, folder: Path) -> None:
        """Write the checkpoint; an earlier one is replaced in one move."""
        state = dataclasses.asdict(self.state)
        # -inf is not JSON; no look has been taken yet.
        state["best_score"] = None if self.state.best_step is None else self.state.best_score
        state.pop("loss")
        metadata = {
            "format": f"setconv-checkpoint-{_FORMAT}",
            "fingerprint": self.fingerprint,
            "state": json.dumps(state),
        }
        cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}
        metadata["checksum"] = _checksum(cpu, metadata["state"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / FILE_NAME, save(cpu, metadata))
        except OSError as error:
            raise CheckpointError(
                f"No checkpoint can be written to checkpoint_dir={str(folder)!r} ({error}): give a "
                "folder with space that you may write to."
            ) from error


def set_aside(folder: Path) -> None:
    """Keep the checkpoint of an earlier run, which a new run would overwrite."""
    earlier = folder / FILE_NAME
    if earlier.is_file():
        kept = earlier.with_name(f"{FILE_NAME}.previous")
        earlier.replace(kept)
        logger.warning(
            "checkpoint_dir had the checkpoint of an earlier run; it is now %s. To go on from it, "
            "move it back and fit with resume_from.",
            kept,
        )


def read_checkpoint(folder: str | Path, fingerprint: str) -> Checkpoint:
    """Read the checkpoint of a run, which must be the run of ``fingerprint``."""
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise CheckpointError(
            f"There is no checkpoint in {folder} (looked for {FILE_NAME}): give the folder that "
            "was checkpoint_dir, or fit without resume_from."
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            # The file is no dictionary: it cannot be iterated without keys().
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        kind = metadata["format"]
        if kind == f"setconv-checkpoint-{_FORMAT}":
            if metadata["checksum"] != _checksum(tensors, metadata["state"]):
                raise ValueError("its checksum is wrong")
            stored: dict[str, Any] = json.loads(metadata["state"])
            if stored["best_score"] is None:
                stored["best_score"] = float("-inf")
            found = Checkpoint(metadata["fingerprint"], TrainingState(**stored), tensors)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} is damaged or not a checkpoint of setconv ({error}): remove it and fit anew."
        ) from error
    if kind != f"setconv-checkpoint-{_FORMAT}":
        raise CheckpointError(f"{path} has format {kind}, which this version does not read.")
    if found.fingerprint != fingerprint:
        raise CheckpointError(
            f"{path} belongs to a fit with other data, parameters or random_state: resume with "
            "the same, or fit without resume_from."
        )
    return found


def _checksum(tensors: dict[str, Tensor], state: str) -> str:
    digest = hashlib.blake2b(state.encode(), digest_size=20)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
