"""A model folder: a fitted classifier as plain data, and back.

The model is one file, model.safetensors: tensors, everything else as JSON in its metadata, and one
checksum over both. It is moved into its place last, so a folder holds the old model or the new one.
config.json and README.md are copies for people, which nothing reads. There is no code in any of it.

`describe` makes a fitted classifier a `SavedModel`, `save` writes that to a folder, `read_model`
reads it and `restore` makes a new classifier what the saved one was. Each part of a classifier
(model, views, sparse front, linear part, decision, labels, parameters) is described and restored
side by side; the card is at the end.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from scipy.sparse import csr_matrix

from setconv._version import __version__
from setconv.decisions.rule import DecisionRule, FittedDecision, smallest
from setconv.errors import MissingDependencyError, ModelFileError
from setconv.io.files import locked_folder, replaced, why_not, write_atomically
from setconv.metrics.report import HEADINGS, WHY_NOT_THE_LARGEST, ClassMetrics, Report, show_bounds
from setconv.model import SetConvModel, under

Array = NDArray[Any]
_FORMAT = "setconv-model"
FORMAT_VERSION = 3
_CONFIG, _TENSORS, _CARD = "config.json", "model.safetensors", "README.md"
# How the header of the file begins, up to the checksum, which is of the file with zeros there.
_HEAD = b'{"__metadata__":{"setconv":"{\\"sha256\\":\\"'
_SIGNATURE = slice(8 + len(_HEAD), 8 + len(_HEAD) + 64)
_UNSIGNED = "0" * 64
_LONGEST_HEADER = 100_000_000  # safetensors reads no longer one
_COPIES = re.compile("encoder-[0-9a-f]{20}")  # folders of files that a model needs
_LONGEST_LABELS = 1 << 26  # bytes


@dataclass(frozen=True)
class SavedModel:
    """What a model folder holds.

    Attributes
    ----------
    kind : str
        Name of the estimator's class.
    config : dict
        Everything but tensors, ready for JSON.
    arrays : dict of str to array
    files : dict of str to Path
        Other files that the model needs, by their names. They are copied into a folder of their
        own, whose name says what is in them.
    """

    kind: str
    config: dict[str, Any]
    arrays: dict[str, Array]
    files: dict[str, Path] = field(default_factory=dict)


def save(saved: SavedModel, folder: Path) -> None:
    """Write a model folder; see `setconv.SetConvClassifier.save`."""
    place = folder.resolve()  # behind a link, what it points to
    try:
        copied = {name: _state(path) for name, path in sorted(saved.files.items())}
        head = {"format": _FORMAT, "format_version": FORMAT_VERSION, "kind": saved.kind}
        config = {**head, "copied": copied, **saved.config}
        content = pack(config, saved.arrays)
        told = json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False)
        if place.exists() and not place.is_dir():
            raise ModelFileError(f"{folder} is a file: give a folder to save the model in.")
        place.mkdir(parents=True, exist_ok=True)
        with locked_folder(place):
            _refuse_foreign(place)
            with _cleaned(place, _copies_of(copied)):
                for name, path in saved.files.items():
                    copy = place / _copies_of(copied) / name
                    if not _is_whole(copy, copied[name]):
                        copy.parent.mkdir(exist_ok=True)
                        write_atomically(copy, path)
                with replaced(place / _TENSORS) as file:
                    file.write(content)
                    write_atomically(place / _CONFIG, told.encode("utf-8", "backslashreplace"))
                    card = write_card(saved.config)
                    write_atomically(place / _CARD, card.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ModelFileError(
            f"The model cannot be saved in {folder} ({why_not(error)}). What was there is as it "
            "was: choose another place, or make room."
        ) from error


def pack(config: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return a model as the content of its file, with the checksum."""
    text = json.dumps({"sha256": _UNSIGNED, **config}, allow_nan=False, separators=(",", ":"))
    tensors = {n: torch.from_numpy(np.asarray(one, order="C")) for n, one in arrays.items()}
    content = bytearray(save_tensors(tensors, {"setconv": text}))
    if not content.startswith(_HEAD, 8) or int.from_bytes(content[:8], "little") > _LONGEST_HEADER:
        raise ModelFileError(
            "The model has more names of columns, words or categories than a model file can hold: "
            "fit it with fewer."
        )
    content[_SIGNATURE] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def _refuse_foreign(folder: Path) -> None:
    """Never replace what is not of a model of ours; other files of the folder stay."""
    taken = [name for name in (_TENSORS, _CONFIG, _CARD) if os.path.lexists(folder / name)]
    if taken and not (
        _starts_with(folder / _TENSORS, _HEAD, 8)
        or _starts_with(folder / _CONFIG, f'{{\n  "format": "{_FORMAT}"'.encode())
    ):
        raise ModelFileError(
            f"{folder} has a {taken[0]} that is not of a setconv model: choose another folder, or "
            "move it away."
        )


def _starts_with(path: Path, start: bytes, skipped: int = 0) -> bool:
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                return file.read(skipped + len(start))[skipped:] == start
    return False


@contextmanager
def _cleaned(folder: Path, copies: str) -> Iterator[None]:
    """Remove copies that neither the model before nor the new one needs, and what failed.

    Whoever has opened the model before may still read its copies; they go with the next save.
    """
    before = ""
    with suppress(ModelFileError):
        before = _copies_of(_read_file(folder)[0]["copied"])
    try:
        yield
    except BaseException:
        if not os.path.lexists(folder / _TENSORS):  # there was no model: nor is there a half one
            for name in (_CONFIG, _CARD):
                (folder / name).unlink(missing_ok=True)
        copies = ""
        raise
    finally:
        for one in folder.iterdir():
            if _COPIES.fullmatch(one.name) and one.name not in (before, copies):
                shutil.rmtree(one, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()  # if nothing is in it


def _copies_of(copied: Mapping[str, Sequence[Any]]) -> str:
    """Return the name of the folder of copies, made from what is in them."""
    told = json.dumps(copied, sort_keys=True).encode()
    return f"encoder-{hashlib.sha256(told).hexdigest()[:20]}"


def _is_whole(path: Path, state: Sequence[Any]) -> bool:
    # The size first: the digest of a file that was made longer may take for ever.
    with suppress(OSError):
        return path.is_file() and path.stat().st_size == state[0] and _state(path) == list(state)
    return False


def _state(path: Path) -> list[Any]:
    """Return the size of a file, and the digest of what is in it."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return [os.fstat(file.fileno()).st_size, digest]


def read_model(folder: Path) -> SavedModel:
    """Read a model folder; a damaged, foreign or newer one is a clear error."""
    config, arrays = _read_file(folder)
    return SavedModel(config["kind"], config, arrays, _find_copies(folder, config["copied"]))


def version_of(folder: Path) -> tuple[int, ...] | None:
    """Return what tells the file of a model from one that was moved into its place."""
    with suppress(OSError):
        state = (folder / _TENSORS).stat()
        return state.st_ino, state.st_mtime_ns, state.st_size
    return None


def checksum(folder: Path) -> str:
    """Return the checksum that stands in the file of a model: that of its content, if it opens."""
    with (folder / _TENSORS).open("rb") as file:
        return file.read(_SIGNATURE.stop)[_SIGNATURE].decode()


def _find_copies(folder: Path, copied: Mapping[str, Sequence[Any]]) -> dict[str, Path]:
    """Return where the copied files are, each checked."""
    found = {}
    for name, state in copied.items():
        path = folder / _copies_of(copied) / name
        if name in ("", ".", "..") or set(name) & set("/\\:\0"):
            raise ModelFileError(f"{folder} names a file outside of it, {name!r}: do not use it.")
        if not _is_whole(path, state):
            raise ModelFileError(
                f"{path} is missing or damaged: copy the whole model folder again."
            )
        found[name] = path.absolute()
    return found


def _read_file(folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what is in the one file of a model, its checksum and its format checked."""
    path = folder / _TENSORS
    if not folder.is_dir():
        raise ModelFileError(f"{folder} is not a folder: give the folder of a saved model.")
    if not path.is_file():  # a pipe would never end
        raise ModelFileError(
            f"{folder} is not a setconv model: it has no {_TENSORS}. Give the folder of a saved "
            "model, whole."
        )
    with understood(folder):
        with path.open("rb") as file:
            start = file.read(_SIGNATURE.stop)
            if not start.startswith(_HEAD, 8):
                raise ModelFileError(
                    f"{path} is not the file of a setconv model, or is damaged: give the folder of "
                    "a saved model, or copy it again."
                )
            # Nothing is read of a file that is longer than it says: it may be of any length.
            length = int.from_bytes(start[:8], "little")
            size = os.fstat(file.fileno()).st_size
            if length > min(size, _LONGEST_HEADER):
                raise ModelFileError(f"{path} is cut short: copy the model folder again.")
            header = start + file.read(8 + length - len(start))
            told: dict[str, Any] = json.loads(header[8:])
            ends = [one["data_offsets"][1] for name, one in told.items() if name[:1] != "_"]
            if 8 + length + max(ends, default=0) != size:
                raise ModelFileError(
                    f"{path} is cut short or damaged: copy the model folder again."
                )
            content = header + file.read()
        digest = hashlib.sha256(content[: _SIGNATURE.start] + _UNSIGNED.encode())
        digest.update(memoryview(content)[_SIGNATURE.stop :])
        if digest.hexdigest().encode() != content[_SIGNATURE]:
            raise ModelFileError(
                f"{path} is damaged (its checksum is not that of its content): copy the model "
                "folder again."
            )
        text = told["__metadata__"]["setconv"]
        config = json.loads(text, parse_float=_finite, parse_int=_whole, parse_constant=_finite)
        version = config["format_version"]
        if version != FORMAT_VERSION:
            versions = config.get("versions")
            wrote = versions.get("setconv", "") if isinstance(versions, dict) else ""
            raise ModelFileError(
                f"{folder} has format version {version!r}, written by setconv {wrote}; this "
                f"version reads {FORMAT_VERSION}. Upgrade: pip install --upgrade setconv"
            )
        if not isinstance(config["kind"], str) or not _are(list, [*config["copied"].values()]):
            raise ValueError("wrong: kind or copied")
        return config, {name: one.numpy() for name, one in load_tensors(content).items()}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{text[:20]} is no number of 64 bits")
    return number


@contextmanager
def understood(folder: Path) -> Iterator[None]:
    """Make whatever goes wrong with the content of a model folder one clear error."""
    try:
        yield
    except (ModelFileError, MissingDependencyError):
        raise
    except Exception as error:  # hostile data finds any of them: RecursionError, MemoryError, ...
        raise ModelFileError(
            f"The content of {folder} does not fit together ({type(error).__name__}: "
            f"{str(error)[:300]}): copy the model folder again."
        ) from error


# Not part of a model: what only makes sense in the process that fitted it.
_LEFT_OUT = ("callbacks", "device", "checkpoint_dir")


def describe(estimator: Any) -> SavedModel:
    """Return everything that `restore` needs of a fitted classifier."""
    names = getattr(estimator, "feature_names_in_", None)
    # The objective of the decision that is saved, whatever was set for the next fit.
    parameters = {**estimator.get_params(deep=False), "objective": estimator.objective_}
    fitted, arrays = describe_fitted(estimator._model, estimator._decision)
    libraries = {"torch": torch, "scikit-learn": sklearn, "numpy": np}
    versions = {name: library.__version__ for name, library in libraries.items()}
    kept = {name: value for name, value in parameters.items() if name not in _LEFT_OUT}
    config = {
        "versions": {"setconv": __version__, **versions, "python": platform.python_version()},
        "parameters": {name: _encode_parameter(name, value) for name, value in kept.items()},
        "classes": _encode_labels(estimator.classes_),
        "class_counts": estimator.class_counts_.tolist(),
        "weight_scales": estimator._weight_scales.tolist(),
        "feature_names": None if names is None else names.tolist(),
        "n_steps": estimator.n_steps_,
        "history": estimator.history_,
        **fitted,
    }
    return SavedModel(type(estimator).__name__, config, arrays)


def restore(estimator: Any, saved: SavedModel, device: torch.device) -> None:
    """Make a new estimator what the saved one was; an error of any kind tells of damage."""
    config, arrays = saved.config, saved.arrays
    parameters = {name: _decode_parameter(value) for name, value in config["parameters"].items()}
    if parameters["anchor"] is None:
        parameters["anchor"] = arrays["anchors"]
    classes = _decode_labels(config["classes"])
    model, decision = restore_fitted(config, arrays, classes, device)
    names, width = config["feature_names"], model.n_features
    counts, scales = (np.array(config[name]) for name in ("class_counts", "weight_scales"))
    right = {
        "classes": len(np.unique(classes)) == model.n_classes,
        "class_counts": counts.shape == classes.shape and counts.dtype.kind == "i",
        "weight_scales": scales.shape == classes.shape and bool((scales > 0).all()),
        "feature_names": names is None or _are(str, names, width),
        "n_steps": type(config["n_steps"]) is int and config["n_steps"] >= 0,
        "history": _are(dict, config["history"]),
        "report": list(decision.report.classes) == classes.tolist(),
    }
    if not all(right.values()) or counts.min() < 0:
        raise ValueError(f"wrong: {', '.join(name for name, ok in right.items() if not ok)}")
    estimator.set_params(**parameters)
    estimator.n_features_in_ = width
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.classes_ = classes
    estimator.class_counts_ = counts
    estimator._weight_scales = scales.astype(np.float64)
    estimator.objective_ = estimator.objective
    estimator.history_ = config["history"]
    estimator.n_steps_ = config["n_steps"]
    estimator._model, estimator._decision = model, decision
    # What opens has decided on a row, and what is told of it can be told.
    row = csr_matrix((1, width)) if model.front is not None else model.anchors[:1, 0]
    said = decision.rule.predictions(model.scores(row))
    if not np.allclose(said.probabilities.sum(axis=1), 1):
        raise ValueError("wrong: probabilities")
    write_card(config)


def _are(kind: type, values: Any, length: int | None = None) -> bool:
    """Whether values are a list of this kind, and so many."""
    listed = isinstance(values, list) and all(type(one) is kind for one in values)
    return listed and (length is None or len(values) == length)


def describe_fitted(
    model: SetConvModel, decision: FittedDecision
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return a model and its decision as plain data and arrays: what pickles hold, too."""
    described, arrays = model.describe()
    evidence = decision.rule.arrays()
    if decision.left_out is not None:  # in few bytes a row
        evidence["left_out"] = np.packbits(decision.left_out, axis=0)
        evidence["n_folds"] = np.array(len(decision.left_out))
    if decision.rows is not None and (decision.rows != np.arange(len(decision.rows))).any():
        evidence["rows"] = smallest(decision.rows)
    arrays |= {f"rule/{name}": array for name, array in evidence.items()}
    return {
        "model": described,
        "rule": decision.rule.to_dict(),
        "report": decision.report.to_dict(),
        "report_source": decision.source,
        "threshold_basis": decision.basis,
        "notes": list(decision.notes),
        "updates": dict(decision.updates),
    }, arrays


def restore_fitted(
    config: Mapping[str, Any], arrays: Mapping[str, Array], classes: Array, device: torch.device
) -> tuple[SetConvModel, FittedDecision]:
    """Return what `describe_fitted` described; a ValueError says what does not fit together."""
    for name, array in arrays.items():
        endless = name.endswith("/high")  # the piece of a constant column has no end
        plain = array.dtype.kind in "biuf"
        if not plain or not (~np.isnan(array) if endless else np.isfinite(array)).all():
            raise ValueError(f"wrong: {name} has what is no finite number")
    model = SetConvModel.restore(config["model"], arrays, device)
    evidence = under("rule/", arrays)
    left_out, rows = evidence.pop("left_out", None), evidence.pop("rows", None)
    if left_out is not None:
        n_folds = int(evidence.pop("n_folds"))
        if not 0 < n_folds <= 8 * len(left_out):
            raise ValueError("wrong: n_folds")
        left_out = np.unpackbits(left_out, axis=0, count=n_folds).astype(np.bool_)
    rule = DecisionRule.from_dict(config["rule"], evidence, classes)
    given = enumerate((rows, left_out))
    right_rows = rows is None or rows.dtype.kind in "iu"
    right_rows &= all(a is None or a.shape[axis:] == (len(rule.evidence),) for axis, a in given)
    if not right_rows or rule.thresholds.shape != (len(model.offset),):
        raise ValueError("wrong: rule")
    return model, FittedDecision(
        rule=rule,
        report=Report.from_dict(config["report"]),
        source=config["report_source"],
        left_out=left_out,
        rows=None if rows is None else rows.astype(np.int64),
        notes=tuple(map(str, config["notes"])),
        updates={str(name): int(n) for name, n in config["updates"].items()},
    )


def _encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    dtype = "object" if labels.dtype.kind == "O" else labels.dtype.str
    values = labels.tolist()
    if not all(isinstance(value, (str, bool, int, float)) for value in values):
        raise ModelFileError(
            f"Labels of type {type(values[0]).__name__} cannot be saved: use strings, bools or "
            "numbers."
        )
    return {"dtype": dtype, "values": values}


def _decode_labels(encoded: Mapping[str, Any]) -> NDArray[Any]:
    values, dtype = encoded["values"], np.dtype(encoded["dtype"])
    plain = all(isinstance(one, (str, bool, int, float)) for one in values)
    if not plain or dtype.kind not in "biufUO" or dtype.itemsize * len(values) > _LONGEST_LABELS:
        raise ValueError("wrong: labels")
    return np.array(values, dtype=dtype)


def _encode_parameter(name: str, value: Any) -> Any:
    """Return a parameter as JSON; what JSON cannot hold is left to `_decode_parameter`."""
    if name == "anchor" and not isinstance(value, str):
        return None  # an array or a callable: the anchors that it gave
    if name == "random_state":
        return int(value) if isinstance(value, (int, np.integer)) else None
    if name == "class_weight" and isinstance(value, Mapping):
        return {"pairs": [[_plain(label), float(weight)] for label, weight in value.items()]}
    return _plain(value)


def _decode_parameter(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, dict) and "pairs" in value:
        return dict(value["pairs"])
    return value


def _plain(value: Any) -> Any:
    """Return numpy scalars, tuples and paths as what JSON knows."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


_COLUMNS = ("specificity", "sensitivity", "f1", "g_mean", "auc", "average_precision")

_SOURCES = {
    "validation": "Measured on validation rows that training did not see.",
    "out_of_fold": "Measured out of fold: on training rows, each by members that had not seen it.",
    "none": "Not measured: the model has seen every row. Judge it on others.",
}


def write_card(config: Mapping[str, Any]) -> str:
    """Return the text of README.md for a model described by its configuration."""
    classes, counts = config["classes"]["values"], config["class_counts"]
    width, takes = config["model"]["n_features"], config.get("takes")
    encoder = config.get("encoder", {})
    made_by = " ".join(encoder[name] for name in ("kind", "model") if name in encoder)
    data = f"{sum(counts)} {takes or 'rows'}, {width} features"
    shares = [[n, f"{n / max(sum(counts), 1):.1%}"] for n in counts]
    report = Report.from_dict(config["report"])
    figures = [[_figure(of, name) for name in _COLUMNS] for of in report.per_class.values()]
    card = files("setconv").joinpath("card.md").read_text(encoding="utf-8")
    return card.format(
        takes=takes or f"rows with {width} numeric features",
        n_classes=len(classes),
        data=f"{data}, made by {_cell(made_by)}" if made_by else data,
        classes=_table(["class", "rows", "share"], classes, shares),
        source=_SOURCES[config["report_source"]],
        metrics=_table(["class", *(HEADINGS[name] for name in _COLUMNS)], classes, figures),
        remarks="".join(f"{_cell(remark)}\n\n" for remark in report.remarks()),
        objective=_cell(repr(config["parameters"]["objective"])),
        basis=_cell(config["threshold_basis"]),
        why=WHY_NOT_THE_LARGEST,
        n_steps=config["n_steps"],
        versions=", ".join(f"{name} {version}" for name, version in config["versions"].items()),
    )


def _figure(of: ClassMetrics, name: str) -> str:
    """Return a figure with its 95 % interval."""
    value, bounds = getattr(of, name), show_bounds(of.intervals.get(name))
    if value != value:
        return "n/a"
    return f"{value:.3f} ({bounds})" if bounds else f"{value:.3f}"


def _table(head: list[str], labels: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1)]
    lines += [[_cell(label), *row] for label, row in zip(labels, rows, strict=True)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cell(words: Any) -> str:
    """Return a label, or words with labels in them, on one line and without marks of Markdown."""
    return _MARKS.sub(r"\\\1", " ".join(str(words).split())) or "(empty)"


_MARKS = re.compile(r"([\\`*_{}\[\]<#|~!&$])")
