"""A model on disk: a folder with safetensors, JSON and a card; nothing in it runs code."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from setconv.errors import ModelFileError
from setconv.files import replace_folder

FORMAT = "setconv-model"
FORMAT_VERSION = 1
CONFIG, TENSORS, CARD = "config.json", "model.safetensors", "README.md"


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds.

    Attributes
    ----------
    kind : str
        Name of the estimator's class.
    config : dict
        Everything but tensors, ready for JSON.
    tensors : dict of str to Tensor
    files : dict of str to Path
        Files to copy into the folder, by their names there; only for writing.
    """

    kind: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    files: dict[str, Path] = field(default_factory=dict)


def write_model(folder: Path, model: SavedModel, card: str) -> None:
    """Write a model folder in one move; see `setconv.SetConvClassifier.save`."""
    _refuse_foreign(folder)
    tensors = save_tensors({k: t.detach().cpu().contiguous() for k, t in model.tensors.items()})
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": model.kind,
        "sha256": hashlib.sha256(tensors).hexdigest(),
        **model.config,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False)
    own = {CONFIG: text.encode(), TENSORS: tensors, CARD: card.encode()}
    replace_folder(folder.resolve(), {**model.files, **own})  # behind a link, what it points to


def _refuse_foreign(folder: Path) -> None:
    """Never replace what is not a model of ours."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is a file: give a folder to save the model in.")
    if any(folder.iterdir()) and _peek_format(folder) != FORMAT:
        raise ModelFileError(
            f"{folder} is not empty and is not a setconv model: choose another folder, or empty it."
        )


def _peek_format(folder: Path) -> str | None:
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError):
        return None
    return config.get("format") if isinstance(config, dict) else None


def read_model(folder: Path) -> SavedModel:
    """Read a model folder; a damaged, foreign or newer one is a clear error."""
    config = _read_config(folder)
    version = config.get("format_version")
    if version != FORMAT_VERSION:
        versions = config.get("versions")
        wrote = versions.get("setconv", "") if isinstance(versions, dict) else ""
        raise ModelFileError(
            f"{folder} has format version {version!r}, written by setconv {wrote}; this version "
            f"reads {FORMAT_VERSION}. Upgrade: pip install --upgrade setconv"
        )
    path = folder / TENSORS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{folder} has no readable {TENSORS} ({error.strerror}): copy the whole model folder."
        ) from error
    if hashlib.sha256(content).hexdigest() != config.get("sha256"):
        raise ModelFileError(
            f"{path} is truncated or damaged (its checksum is not the one in {CONFIG}): copy the "
            "model folder again."
        )
    try:
        tensors = load_tensors(content)
    except SafetensorError as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error
    return SavedModel(str(config.get("kind")), config, tensors)


def _read_config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        aside = sorted(folder.absolute().parent.glob(f".{folder.name}.old-*"))
        hint = f" A save was cut short; the earlier model is in {aside[-1]}." if aside else ""
        raise ModelFileError(f"{folder} is not a folder: give the folder of a saved model.{hint}")
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except OSError as error:
        raise ModelFileError(
            f"{folder} is not a setconv model: it has no readable {CONFIG} ({error.strerror})."
        ) from error
    except ValueError as error:
        raise ModelFileError(
            f"{folder / CONFIG} is truncated or damaged ({error}): copy the model folder again."
        ) from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelFileError(f"{folder} is not a setconv model: {CONFIG} is of another kind.")
    return config
