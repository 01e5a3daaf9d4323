"""A `TextEncoder` as plain data, and back."""

from __future__ import annotations

from typing import Any

from setconv.errors import ModelFileError
from setconv.text.models import EncoderFiles

# What of the parameters belongs to the encoder, not to the machine that it runs on.
_KEPT = ("pooling", "normalize", "max_length", "batch_size", "dtype")


def describe_encoder(parameters: dict[str, Any], files: EncoderFiles) -> dict[str, Any]:
    """Return an encoder as data for JSON; the model is named, not copied."""
    plain = {name: parameters[name] for name in _KEPT}
    for name in ("max_length", "batch_size"):
        plain[name] = int(plain[name])
    plain["normalize"] = bool(plain["normalize"])
    return {
        "kind": "TextEncoder",
        "model": files.name,
        "revision": files.revision,
        "fingerprint": files.fingerprint,
        "width": files.width,
        "parameters": plain,
    }


def read_description(config: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a described encoder."""
    try:
        parameters = {name: config["parameters"][name] for name in _KEPT}
        return {"model": config["model"], "revision": config["revision"], **parameters}
    except (KeyError, TypeError) as error:
        raise ModelFileError(
            f"The description of a TextEncoder lacks {error}: save the model again."
        ) from error


def refuse_other_model(config: dict[str, Any], files: EncoderFiles) -> None:
    """Refuse a model whose files are not those that were described."""
    if files.fingerprint != config.get("fingerprint"):
        raise ModelFileError(
            f"The encoder in {files.folder} is not the one that the model was fitted with: its "
            "files have changed. Put the old ones back, or fit again."
        )
