"""Which files make up an encoder, and what is in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from setconv.errors import ModelFileError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# One of these has the vocabulary; the others say how it is used.
_VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_TOKENIZER = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
PATTERNS = (CONFIG, *_VOCABULARIES, *_TOKENIZER, INDEX, "model*.safetensors")
_WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")


def list_files(folder: Path) -> dict[str, Path]:
    """Return the files of an encoder by their names: configuration, tokenizer, weights.

    A folder with exactly these files loads as the same encoder.
    """
    if not (folder / CONFIG).is_file():
        raise ModelFileError(
            f"{folder} has no {CONFIG}: give a folder in which a Hugging Face encoder was saved "
            "(model.save_pretrained(folder) and tokenizer.save_pretrained(folder))."
        )
    vocabularies = _matching(folder, _VOCABULARIES)
    if not vocabularies:
        raise ModelFileError(
            f"{folder} has no tokenizer ({', '.join(_VOCABULARIES)}): save it there too with "
            "tokenizer.save_pretrained(folder)."
        )
    names = [CONFIG, *vocabularies, *_matching(folder, _TOKENIZER), *_weights(folder)]
    return {name: folder / name for name in sorted(names)}


def fingerprint(files: Mapping[str, Path]) -> str:
    """Return a digest of the names and contents of files."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in sorted(files.items()):
        state = path.stat()
        content = _digest(path.resolve(), state.st_size, state.st_mtime_ns)
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def read_width(folder: Path) -> int:
    """Return the number of columns that the encoder gives."""
    config = _read_json(folder / CONFIG)
    for name in _WIDTHS:
        if isinstance(config.get(name), int):
            return int(config[name])
    raise ModelFileError(
        f"{folder / CONFIG} does not say how wide the encoder is ({', '.join(_WIDTHS)}): choose "
        "an encoder of text alone."
    )


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[str]:
    return [path.name for one in patterns for path in folder.glob(one) if path.is_file()]


def _weights(folder: Path) -> list[str]:
    if (folder / WEIGHTS).is_file():
        return [WEIGHTS]
    if (folder / INDEX).is_file():
        parts = sorted(set(_read_json(folder / INDEX).get("weight_map", {}).values()))
        lacking = [part for part in parts if not (folder / part).is_file()]
        if lacking or not parts:
            raise ModelFileError(
                f"{folder} lacks weights that {INDEX} names: {', '.join(lacking) or 'all'}. "
                "Copy or download the folder again."
            )
        return [INDEX, *parts]
    pickled = _matching(folder, ("*.bin", "*.pt", "*.pth"))
    found = f" but {pickled[0]}, a pickle, which can run code and is not loaded" if pickled else ""
    raise ModelFileError(
        f"{folder} has no {WEIGHTS}{found}. Save the model as safetensors "
        "(model.save_pretrained(folder) does), or choose one that has them."
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}. Copy the folder again.") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is damaged: it holds no object. Copy the folder again.")
    return content


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified: int) -> str:  # noqa: ARG001
    """Return the digest of a file, computed once for as long as it does not change."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
