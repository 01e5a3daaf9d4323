"""The folder of an export: graph, encoder, program, and what was found when they were tried.

All of it is made and tried in a folder beside its place, which is moved there at the end.
"""

from __future__ import annotations

import json
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime.quantization import quantize_dynamic
from tokenizers import Tokenizer
from torch import Tensor, nn

from setconv._version import __version__
from setconv.errors import DataError, MissingDependencyError, ModelFileError, ParameterError
from setconv.export.graph import to_onnx
from setconv.export.predict import Model
from setconv.io.columns import as_table
from setconv.io.encoder import FeatureEncoder
from setconv.io.files import locked_folder
from setconv.messages import needed
from setconv.text.encoder import TextEncoder, pool
from setconv.text.transformer import load_network

# An export has the first, and of others some; the next one to the same place replaces it.
_FILES = {"model.onnx", "predict.py", "setconv.json"}
_OTHERS = {"README.md", "encoder.onnx", "tokenizer.json", "__pycache__"}


def export_model(
    model: Any, folder: str | Path, *, int8: bool = False, verify: Any = None
) -> list[str]:
    """Write a folder that predicts without torch; the README in it says how.

    Parameters
    ----------
    model : SetConvClassifier, SetConvTextClassifier or SetConvTableClassifier
        Fitted; its encoder, if it has one, is a `TextEncoder` or `FeatureEncoder`.
    folder : path
        A new one, an empty one, or an earlier export, which is replaced.
    int8 : bool, default=False
        Whether the weights of a text encoder are rounded to eight bits. What that costs is
        measured, so there have to be texts to verify with.
    verify : sequence of str, table or array, optional
        Rows that model and export both predict. How far they differ is in the README.

    Returns
    -------
    list of str
        What was found, a sentence for each comparison.
    """
    encoder = getattr(model, "encoder_", None)
    if not isinstance(encoder, TextEncoder | FeatureEncoder | None):
        raise ParameterError(
            f"A {type(encoder).__name__} cannot be exported. What works: fit with a TextEncoder; "
            "setconv.export.to_onnx, for rows that your encoder makes; or setconv predict."
        )
    if int8 and (verify is None or not isinstance(encoder, TextEncoder)):
        why = "it rounds the encoder of a model of texts, and texts are needed to measure the loss"
        raise ParameterError(f"int8=True: {why} (verify=).", parameter="int8")
    graph, found = to_onnx(model), []
    with _moved(Path(folder).resolve()) as new:
        onnx.save(graph, new / "model.onnx")
        shutil.copyfile(str(files("setconv.export") / "predict.py"), new / "predict.py")
        about = _describe(model)
        if isinstance(encoder, TextEncoder):
            column = (getattr(model, "source_", None) or {}).get("text", "text")
            about |= {"columns": [{"name": column, "kind": "text"}]} | _write_encoder(encoder, new)
        (new / "setconv.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
        Model(new)  # the runtime takes it
        if verify is not None:
            found.append(f"float32, {_compare(model, new, verify)}")
        if int8:
            place = new / "encoder.onnx"
            # A scale a channel, and 7 bits, which no processor's sums of products overflow.
            with _quiet():
                quantize_dynamic(place, place, per_channel=True, reduce_range=True)
            found.append(f"int8, {_compare(model, new, verify)}")
        readme = (files("setconv.export") / "readme.md").read_text(encoding="utf-8")
        compared = "\n".join(f"- {one}" for one in found or ["It was not (`--verify FILE` does)."])
        (new / "README.md").write_text(readme.format(compared=compared, **about), encoding="utf-8")
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep other libraries from telling what they do themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        try:
            yield
        finally:
            logging.disable(before)


@contextmanager
def _moved(place: Path) -> Iterator[Path]:
    """Give a new folder, which takes its place at the end; after an error it is gone."""
    names = {one.name for one in place.glob("*")}
    if place.is_file() or (names and not _FILES <= names <= _FILES | _OTHERS):
        raise ModelFileError(f"{place} is there already: give a new folder, or remove it first.")
    new = place.with_name(f".{place.name}.new")
    place.parent.mkdir(parents=True, exist_ok=True)
    with locked_folder(place.parent):  # so what is there already was left by a killed export
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        try:
            yield new
            shutil.rmtree(place, ignore_errors=True)
            new.rename(place)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _describe(model: Any) -> dict[str, Any]:
    """Return what the program needs to know, and what people want to."""
    encoder, classifier = getattr(model, "encoder_", None), getattr(model, "classifier_", model)
    names = getattr(model, "feature_names_in_", None)
    table = FeatureEncoder.of_numbers(names) if encoder is None and names is not None else encoder
    return {
        "setconv": __version__,
        "takes": getattr(model, "takes", "rows"),
        "classes": model.classes_.tolist(),
        "objective": str(classifier._decision.rule.objective),
        "columns": table.describe()[0]["columns"] if isinstance(table, FeatureEncoder) else None,
        "n_features": classifier.n_features_in_,
        "dtype": "float64" if encoder is None else "float32",
    }


class _Embedding(nn.Module):
    """The network of an encoder, with what `TextEncoder` does after it."""

    def __init__(self, network: Any, encoder: TextEncoder) -> None:
        super().__init__()
        self.network, self.pooling, self.normalize = network, encoder.pooling, encoder.normalize

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.network(input_ids=input_ids, attention_mask=attention_mask)
        pooled = pool(states.last_hidden_state, attention_mask, self.pooling)
        return nn.functional.normalize(pooled, eps=1e-38) if self.normalize else pooled


def _write_encoder(encoder: TextEncoder, folder: Path) -> dict[str, Any]:
    """Write the network and the tokenizer of texts; return what is to be known of them."""
    if not hasattr(torch.export.Dim, "DYNAMIC"):
        raise MissingDependencyError("To export an encoder takes torch 2.6 or newer: upgrade it.")
    network = load_network(encoder.find_files(), torch.device("cpu"), "float32")
    if not network.tokenizer.is_fast:
        raise ModelFileError("The encoder has no tokenizer.json: choose one that has it.")
    tokenizer = Tokenizer.from_str(network.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    length = min(encoder.max_length, network.longest)
    tokenizer.enable_truncation(length, direction=network.tokenizer.truncation_side)
    tokenizer.save(str(folder / "tokenizer.json"))
    # Not one tensor twice: its uses would be one input. A node inside has the output's usual name.
    ids, free = torch.arange(16).reshape(2, 8) % 2, dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    options: Any = {"dynamo": True, "dynamic_shapes": (free, free), "external_data": False}
    options |= {"input_names": ["input_ids", "attention_mask"], "verbose": False}
    options |= {"output_names": ["sentence_embedding"]}
    module, given = _Embedding(network.module, encoder).eval(), (ids, torch.ones_like(ids))
    with needed("The export of an encoder", "onnxscript", "onnx"), _quiet():
        torch.onnx.export(module, given, folder / "encoder.onnx", **options)
    return {"max_length": encoder.max_length, "unknown": network.tokenizer.unk_token_id or 0}


def _compare(model: Any, folder: Path, rows: Any) -> str:
    """Say how far the model and its export differ on rows."""
    exported = Model(folder)
    given = rows if isinstance(rows, list | np.ndarray) else as_table(rows).to_pylist()
    try:
        if exported.about["takes"] == "rows":
            rows = given = exported.encode(given)
        with _quiet():  # the matrix has no names
            ours, theirs = model.predictions(rows), exported.predict(given)
    except ValueError as error:
        raise DataError(f"The rows to verify with cannot be predicted. {error}") from error
    apart = np.abs(theirs["probabilities"] - ours.probabilities).max()
    others = np.count_nonzero(model.classes_[theirs["label"]] != ours.labels)
    return f"{len(ours):,} rows: {others:,} decisions differ, probabilities by at most {apart:.1e}"
