"""Data sets as files that all workers share: loaded and encoded once, known by a digest."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.experiment.protocol.encoding import encode_texts
from setconv.experiment.protocol.loading import load_data, source_files
from setconv.experiment.protocol.study import DataSpec, Study
from setconv.files import replace_folder, write_atomically

__all__ = ["Prepared", "Rows", "known_data", "prepare", "rows_of"]

logger = logging.getLogger(__name__)

_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Prepared:
    """What is known of a data set whose rows are ready.

    Attributes
    ----------
    digest : str
        Of everything that a cell can see: features or texts, labels and groups.
    counts : dict of str to int
        Rows of each class.
    provenance, licence : str
    """

    digest: str
    counts: dict[str, int]
    provenance: str
    licence: str


@dataclass(frozen=True)
class Rows:
    """The rows themselves.

    Attributes
    ----------
    features : array of shape (n_rows, n_features), or of texts
    labels : array of str
    groups : array of int or None
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None


def prepare(study: Study, folder: Path, data: Path) -> dict[str, Prepared]:
    """Load and encode the data sets that are new or whose files have changed.

    Parameters
    ----------
    study : Study
    folder : Path
        Where rows are kept for the workers.
    data : Path
        Where paths of the study begin.
    """
    manifest = _read_manifest(folder)
    done: dict[str, Prepared] = {}
    for spec in study.data:
        key = _key(study, spec)
        entry = {"source": key, "files": [list(one) for one in source_files(spec, data)]}
        known = manifest.get(_name(key))
        if known is None or known["entry"] != entry:
            logger.info("loading %s", spec.base or spec.name)
            known = {"entry": entry, "prepared": asdict(_prepare(study, spec, folder, data))}
            manifest[_name(key)] = known
            write_atomically(folder / _MANIFEST, json.dumps(manifest, indent=1).encode())
        done[spec.name] = Prepared(**known["prepared"])
    return done


def known_data(study: Study, folder: Path) -> dict[str, Prepared]:
    """Return the data sets that an earlier run has prepared, as they were then."""
    manifest = _read_manifest(folder)
    found = {spec.name: manifest.get(_name(_key(study, spec))) for spec in study.data}
    return {name: Prepared(**one["prepared"]) for name, one in found.items() if one is not None}


@cache
def rows_of(folder: Path, digest: str) -> Rows:
    """Return the rows of a prepared data set; features are read from disk where they are needed."""
    place = folder / digest
    groups = place / "groups.npy"
    texts = place / "texts.json"
    return Rows(
        np.array(json.loads(texts.read_text(encoding="utf-8")), dtype=object)
        if texts.exists()
        else np.load(place / "features.npy", mmap_mode="r"),
        np.load(place / "labels.npy"),
        np.load(groups) if groups.exists() else None,
    )


def _prepare(study: Study, spec: DataSpec, folder: Path, data: Path) -> Prepared:
    dataset = load_data(spec, data)
    files = _files(dataset, _encoder(study, spec))
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    name = digest.hexdigest()[:20]
    if not (folder / name).exists():
        replace_folder(folder / name, files)
    counts = {str(label): int(count) for label, count in dataset.class_counts.items()}
    return Prepared(name, counts, dataset.provenance, dataset.licence)


def _files(dataset: Any, encoder: dict[str, Any]) -> dict[str, bytes]:
    files = {"labels.npy": _array(dataset.labels.astype(str))}
    features = dataset.features
    if features is None:
        assert dataset.texts is not None
        features = encode_texts(dataset.texts, encoder)
    if features is None:
        files["texts.json"] = json.dumps(dataset.texts).encode()
    else:
        files["features.npy"] = _array(np.asarray(features, dtype=np.float32))
    if dataset.groups is not None:
        # Names may be of any kind; workers need only know which are equal, and their order.
        names = np.asarray(dataset.groups).astype(str)
        files["groups.npy"] = _array(np.unique(names, return_inverse=True)[1])
    return files


def _array(values: NDArray[Any]) -> bytes:
    content = BytesIO()
    np.save(content, values, allow_pickle=False)
    return content.getvalue()


def _encoder(study: Study, spec: DataSpec) -> dict[str, Any]:
    return dict(study.encoder if spec.encoder is None else spec.encoder)


def _key(study: Study, spec: DataSpec) -> dict[str, Any]:
    key = {**spec.loading(), "encoder": _encoder(study, spec)}
    loaded: dict[str, Any] = json.loads(json.dumps(key, sort_keys=True))
    return loaded


def _name(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]


def _read_manifest(folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _MANIFEST
    if not path.exists():
        return {}
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest
