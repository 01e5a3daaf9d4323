"""Where a training run stands, and a file with all that it needs to go on to the same result."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from setconv.errors import CheckpointError
from setconv.io.files import write_atomically

FILE_NAME = "checkpoint.safetensors"
_FORMAT = "setconv-checkpoint-1"
_Number = TypeVar("_Number", int, float)
logger = logging.getLogger("setconv")


@dataclass
class TrainingState:
    """Where a training run stands; what callbacks see.

    Attributes
    ----------
    max_steps : int
    step : int
        Steps done.
    loss : float
        Mean training loss since the last record in ``history``; nan before the first.
    history : list of dict
        One record every hundredth of the run and at every look at the validation rows: "step",
        "loss", "lr", and with validation rows "validation" (the monitored figure, higher is
        better).
    best_step : int or None
        Step of the best look at the validation rows so far.
    best_score : float
    looks_since_best : int
    stop : bool
        Set it to True to end the run after this step.
    """

    max_steps: int
    step: int = 0
    loss: float = float("nan")
    history: list[dict[str, float]] = field(default_factory=list)
    best_step: int | None = None
    best_score: float = float("-inf")
    looks_since_best: int = 0
    stop: bool = False

    def look(self, score: float) -> bool:
        """Add a look at the validation rows to the last record; return whether it is the best."""
        self.history[-1]["validation"] = score
        if best := self.best_step is None or score > self.best_score:
            self.best_step, self.best_score, self.looks_since_best = self.step, score, 0
        else:
            self.looks_since_best += 1
        return best


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


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after a whole number of steps.

    The learning rate, the dropout masks and the episodes are functions of the seed and the step,
    so the weights, the optimiser's moments and the step are all there is to keep.

    Attributes
    ----------
    fingerprint : str
        What the run depends on: data, seed and parameters.
    state : TrainingState
    sections : mapping of str to mapping of str to Tensor
        "network", "optimizer", "best" and "loss".
    """

    fingerprint: str
    state: TrainingState
    sections: Mapping[str, Mapping[str, Tensor]]

    def write(self, folder: Path) -> None:
        """Write the checkpoint; an earlier one is replaced in one move."""
        # All else of the state follows from the history.
        state = json.dumps({"step": self.state.step, "history": self.state.history})
        named = _flat(self.sections)
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}
        metadata = {"format": _FORMAT, "fingerprint": self.fingerprint, "state": state}
        metadata["checksum"] = _checksum(tensors, state)
        with _writable(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / FILE_NAME, save(tensors, metadata))


def set_aside(folder: Path) -> None:
    """Keep the checkpoint of an earlier run, which a new run would overwrite."""
    earlier = folder / FILE_NAME
    if earlier.is_file():
        kept = earlier.with_name(f"{FILE_NAME}.previous")
        with _writable(folder):
            earlier.replace(kept)
        logger.warning(
            "checkpoint_dir had the checkpoint of an earlier run; it is now %s. To go on from it, "
            "move it back and fit with resume_from.",
            kept,
        )


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()  # if nothing is in it: there is nothing to go on from
        why = f"No checkpoint can be written to checkpoint_dir={str(folder)!r} ({error})."
        hint = "Give a folder with space that you may write to."
        raise CheckpointError(why, parameter="checkpoint_dir", hint=hint) from error


def read_checkpoint(folder: str | Path, own: Checkpoint) -> Checkpoint:
    """Read the checkpoint of a run.

    Parameters
    ----------
    folder : str or Path
    own : Checkpoint
        The same run at its start. Under "best" it has the form of the best weights, if it keeps
        any.
    """
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        why = f"There is no checkpoint in {folder} (looked for {FILE_NAME})."
        hint = "Give the folder that was checkpoint_dir, or fit without resume_from."
        raise CheckpointError(why, parameter="resume_from", hint=hint)
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            # The file is no dictionary: it cannot be iterated without keys().
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["format"] != _FORMAT:
            raise ValueError(f"its format is {metadata['format']}, which is not read here")
        if metadata["checksum"] != _checksum(tensors, metadata["state"]):
            raise ValueError("its checksum is wrong")
        if metadata["fingerprint"] != own.fingerprint:
            raise CheckpointError(
                f"{path} belongs to a fit with other data, parameters or random_state: resume with "
                "the same, or fit without resume_from."
            )
        state = _read_state(metadata["state"], own.state.max_steps)
        best = {} if state.best_step is None else own.sections["best"]
        _check_tensors(tensors, _flat({**own.sections, "best": best}))
    except CheckpointError:
        raise
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged or not a checkpoint of setconv ({error}): remove it and fit anew."
        ) from error
    sections: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for key, tensor in tensors.items():
        section, _, name = key.partition("/")
        sections[section][name] = tensor
    return Checkpoint(own.fingerprint, state, sections)


def _read_state(text: str, max_steps: int) -> TrainingState:
    """Return the state to which the written history leads."""
    written, state = json.loads(text), TrainingState(max_steps)
    for record in written["history"]:
        state.step, state.loss = _number(record["step"], int), _number(record["loss"], float)
        _number(record["lr"], float)
        state.history.append(record)
        if "validation" in record:
            state.look(_number(record["validation"], float))
    state.step = _number(written["step"], int)
    steps = [0, *(record["step"] for record in state.history), state.step, max_steps]
    if steps != sorted(steps):
        raise ValueError("its steps are not in order")
    return state


def _number(value: Any, kind: type[_Number]) -> _Number:
    if type(value) is not kind:
        raise ValueError(f"it has {value!r} where a number is due")
    return value


def _check_tensors(found: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Refuse tensors that cannot be those of a run with tensors of this form."""
    if found.keys() != own.keys():
        raise ValueError(f"it lacks or adds {min(found.keys() ^ own.keys())}")
    for name, tensor in found.items():
        if (tensor.shape, tensor.dtype) != (own[name].shape, own[name].dtype):
            raise ValueError(f"{name} has another form")
        if not tensor.isfinite().all():
            raise ValueError(f"{name} has numbers that are not finite")


def _flat(sections: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {f"{key}/{name}": one for key, named in sections.items() for name, one in named.items()}


def _checksum(tensors: dict[str, Tensor], state: str) -> str:
    digest = hashlib.blake2b(state.encode(), digest_size=20)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
