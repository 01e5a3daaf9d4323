"""The rows of a study's data sets, as files that all workers share.

`prepare` loads and encodes each data set once and keeps it under the digest of its rows; `rows_of`
opens it in a worker, if it still is what was kept. Encoders that learn from rows are left to the
cells: `with_encoder` puts them in front of a method.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError, StudyFileError
from setconv.experiment.store import writing
from setconv.experiment.study import DataSpec, Study, known_name
from setconv.io.files import locked_folder, write_atomically
from setconv.messages import require_column
from setconv.sampling import row_keys, text_keys, tie_copies

if TYPE_CHECKING:
    from setconv.datasets.dataset import Dataset

logger = logging.getLogger(__name__)

# "transformer" learns nothing from the rows, so it may see all of them before they are split.
_ENCODERS = ("transformer", "paper", "tfidf", "terms")
_NAMES = ("copies.npy", "features.npy", "groups.npy", "labels.npy", "texts.json")
_WAITING = "another process is at work in %s: waiting for it"
_FORMAT = 2  # changes when the same files would be kept as other rows


@dataclass(frozen=True)
class Prepared:
    """What is known of a data set whose rows are ready.

    Attributes
    ----------
    digest : str
        Of everything that a cell can see: features or texts, labels, groups and copies.
    counts : dict of str to int
        Rows of each class.
    n_copies : int
        Rows that are copies of others.
    provenance, licence : str
    folder : str
        Where the paths of the study began; the provenance calls it FOLDER.
    """

    digest: str
    counts: dict[str, int]
    n_copies: int
    provenance: str
    licence: str
    folder: str


@dataclass(frozen=True)
class Rows:
    """The rows themselves.

    Attributes
    ----------
    features : array of shape (n_rows, n_features), or of texts
    labels : array of str
    groups : array of int or None
    copies : array of int or None
        Equal for rows that are copies; None if none are.
    """

    features: NDArray[Any]
    labels: NDArray[Any]
    groups: NDArray[Any] | None
    copies: NDArray[np.int64] | None


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
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    here = str(data.resolve())
    for spec in study.data:
        note, sources = _note(study, spec, folder), _source_files(spec, data)
        if (known := _ready(note, sources)) is None:
            with locked_folder(folder, partial(logger.warning, _WAITING, folder)):
                known = _ready(note, sources)  # another process may have done it meanwhile
                if known is None:
                    logger.info("loading %s", spec.base or spec.name)
                    known = _prepare(study, spec, folder, data)
                    _write_note(note, sources, known)
        if known.folder != here:
            _write_note(note, sources, replace(known, folder=here))
    return known_data(study, folder)


def known_data(study: Study, folder: Path) -> dict[str, Prepared]:
    """Return the data sets that were prepared, as they were then."""
    notes = {spec.name: _note(study, spec, folder) for spec in study.data}
    return {name: _read_note(note)[1] for name, note in notes.items() if note.exists()}


def _ready(note: Path, sources: list[list[str | int]]) -> Prepared | None:
    """Return a data set that is prepared from these files and whole; else None."""
    if note.exists():
        try:
            files, known = _read_note(note)
            return known if files == sources and _is_whole(note.parent, known.digest) else None
        except StudyFileError as error:
            logger.info("%s", error)
    return None


def _read_note(note: Path) -> tuple[Any, Prepared]:
    """Return from which files a data set was prepared, and what is known of it."""
    try:
        if not note.is_file():
            raise ValueError("it is no file")
        told = json.loads(note.read_bytes())
        if told.pop("checksum") != _checksum(told):
            raise ValueError("its checksum is another")
        return told["files"], Prepared(**told["prepared"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StudyFileError(
            f"{note} is damaged, or of another version of setconv ({error}).",
            hint="Run the study again: the file is made anew.",
        ) from error


def _write_note(note: Path, sources: list[list[str | int]], known: Prepared) -> None:
    told = {"files": sources, "prepared": asdict(known)}
    with writing(note):
        write_atomically(note, json.dumps({**told, "checksum": _checksum(told)}, indent=1).encode())


def _checksum(told: Any) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _note(study: Study, spec: DataSpec, folder: Path) -> Path:
    """Return the file that tells of a data set, named by what its rows depend on."""
    kept = (_FORMAT, spec.load, dict(spec.options), spec.binary, spec.drop, spec.size)
    return folder / f"{_checksum([*kept, study.text_encoder(spec)])[:20]}.json"


@cache
def rows_of(folder: Path, digest: str) -> Rows:
    """Return the rows of a prepared data set; features are read from disk where they are needed."""
    place = folder / digest
    if not _is_whole(folder, digest):
        told = f"{place} does not have the rows that were kept there: they are damaged."
        raise StudyFileError(told, hint="Run the study again: they are made anew.")
    groups, copies, texts = (place / name for name in ("groups.npy", "copies.npy", "texts.json"))
    return Rows(
        np.array(json.loads(texts.read_text(encoding="utf-8")), dtype=object)
        if texts.exists()
        else np.load(place / "features.npy", mmap_mode="r"),
        np.load(place / "labels.npy"),
        np.load(groups) if groups.exists() else None,
        np.load(copies) if copies.exists() else None,
    )


def _is_whole(folder: Path, digest: str) -> bool:
    """Whether the files of a data set are those that its digest was made of."""
    paths = [folder / digest / name for name in _NAMES]
    found = {path.name: path for path in paths if path.exists()}
    try:
        return all(one.is_file() for one in found.values()) and _digest(found) == digest
    except OSError:
        return False


def _digest(files: Mapping[str, bytes | Path]) -> str:
    """Return what a data set is called: the digest of its files, of which paths are read."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        digest.update(f"{name}:{size}:".encode())
        with content.open("rb") if isinstance(content, Path) else BytesIO(content) as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()[:20]


def _prepare(study: Study, spec: DataSpec, folder: Path, data: Path) -> Prepared:
    dataset = _load_data(spec, data)
    files, n_copies = _files(dataset, study.text_encoder(spec))
    name = _digest(files)
    place = folder / name
    with writing(place):
        place.mkdir(exist_ok=True)
        for file in _NAMES:
            content, path = files.get(file), place / file
            if content is None:
                path.unlink(missing_ok=True)
            elif not path.is_file() or path.read_bytes() != content:
                write_atomically(path, content)
    counts = {str(label): int(count) for label, count in dataset.class_counts.items()}
    # A page is for others: it names the folder as the command does that it prints.
    provenance = dataset.provenance.replace(f"{data}{os.sep}", "FOLDER/")
    return Prepared(name, counts, n_copies, provenance, dataset.licence, str(data.resolve()))


def _files(dataset: Dataset, encoder: Mapping[str, Any]) -> tuple[dict[str, bytes], int]:
    """Return the content of each file, and how many rows are copies of others."""
    arrays, files = {"labels.npy": dataset.labels.astype(str)}, {}
    texts, features = dataset.texts, dataset.features
    if texts is not None and (features := _encode_texts(texts, encoder)) is None:
        files["texts.json"] = json.dumps(texts).encode()
    if features is not None:
        arrays["features.npy"] = np.asarray(features, dtype=np.float32)
    rows = arrays["features.npy"] if texts is None else None
    keys = row_keys(arrays["features.npy"]) if texts is None else text_keys(texts)
    ties = tie_copies(keys, rows, np.unique(arrays["labels.npy"], return_inverse=True)[1], None)
    if ties.units is not None:
        arrays["copies.npy"] = ties.units
    if dataset.groups is not None:
        # Names may be of any kind; workers need only know which are equal, and their order.
        names = np.asarray(dataset.groups).astype(str)
        arrays["groups.npy"] = np.unique(names, return_inverse=True)[1]
    for name, values in arrays.items():
        content = BytesIO()
        np.save(content, values, allow_pickle=False)
        files[name] = content.getvalue()
    return files, ties.n_copies


def _source_files(spec: DataSpec, folder: Path) -> list[list[str | int]]:
    """Return name, size and time of the files that the rows come from."""
    if "path" not in spec.options:
        return []
    path = folder / str(spec.options["path"])
    if not path.exists():
        raise FileNotFoundError(
            f"{spec.name}: there is no {path}. Say where the data is (data=, --data); "
            "help(setconv.datasets) says where benchmarks are published."
        )
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(one.name, one.stat()) for one in found if one.is_file()]
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]


def _load_data(spec: DataSpec, folder: Path) -> Dataset:
    """Return the rows of a data set, as the study wants them; its path begins in the folder."""
    loaders = _loaders()
    loader = loaders[known_name("loader", spec.load, loaders, spec.name)]
    known = inspect.signature(loader).parameters
    names = ["path" if name == "folder" else name for name in known]
    options = dict(spec.options)
    for name in options:
        known_name("option of its loader,", name, names, spec.name)
    for name, one in zip(names, known.values(), strict=True):
        if one.default is one.empty and name not in options:
            raise ParameterError(f"{spec.name}: its loader needs {name!r}.", parameter=name)
    if "path" in options:  # loaders that read files take the place first
        options[next(iter(known))] = folder / str(options.pop("path"))
    # A loader that can sample reads files that would not fit in memory.
    size = spec.size
    if "size" in known and size is not None:
        options["size"], size = size, None
    try:
        dataset = loader(**options)
    except (DataError, OSError) as error:
        raise type(error)(f"{spec.name}: {error}") from error
    if spec.drop:
        for label in spec.drop:
            known_name("class", label, map(str, dataset.classes), spec.name)
        dataset = dataset.take(~np.isin(dataset.labels.astype(str), spec.drop))
    if spec.binary is not None:
        # "not crash" is no name that a user has seen; the class is still called what it was.
        dataset = dataset.binary(spec.binary, name=spec.name)
    return dataset if size is None else dataset.subsample(min(size, dataset.n_rows))


def _loaders() -> dict[str, Callable[..., Dataset]]:
    from setconv import datasets

    own: dict[str, Callable[..., Dataset]] = {"digits": _load_digits, "npz": _load_npz}
    names = ("amazon", "file", "irt", "named", "semeval")
    return own | {name: getattr(datasets, f"load_{name}") for name in names}


def _load_npz(
    path: Path, features: str = "X", label: str = "y", group: str | None = None
) -> Dataset:
    """Return the arrays of a .npz file; none of them may be pickled."""
    from setconv.datasets.dataset import Dataset

    with np.load(path, allow_pickle=False) as stored:
        X, y, *groups = (
            stored[require_column(name, list(stored), "features, label or group")]
            for name in (features, label, group)
            if name
        )
    X, y = X.astype(np.float32), y.astype(str)
    return Dataset(path.stem, None, X, y, groups=groups[0] if groups else None)


def _load_digits(digit: int) -> Dataset:
    """Return scikit-learn's images of digits, 8 x 8 pixels: one digit against the others."""
    from sklearn.datasets import load_digits

    from setconv.datasets.dataset import Dataset

    X, y = load_digits(return_X_y=True)
    return Dataset("digits", None, X.astype(np.float32), y.astype(str)).binary(str(digit))


def _encode_texts(texts: list[str], encoder: Mapping[str, Any]) -> NDArray[np.float32] | None:
    """Return the embeddings of texts; None if the encoder must be fitted to training rows.

    Parameters
    ----------
    texts : list of str
    encoder : mapping
        ``kind``: "transformer" (the default; other entries are parameters of
        `setconv.text.TextEncoder`), "paper" (BERT-large-cased-whole-word-masking, [CLS]), "tfidf"
        (`setconv.text.TfidfEncoder`) or "terms" (TF-IDF of single words, not condensed).
    """
    kind, parameters = _parts(encoder)
    if kind in ("tfidf", "terms"):
        return None
    from setconv.text.encoder import TextEncoder

    made = (TextEncoder.paper if kind == "paper" else TextEncoder)(**parameters)
    return np.asarray(made.fit(texts).transform(texts), dtype=np.float32)


def with_encoder(estimator: Any, encoder: Mapping[str, Any]) -> Any:
    """Return a pipeline that makes features of texts by what the training texts teach."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from setconv.text.tfidf import TfidfEncoder

    kind, parameters = _parts(encoder)
    if kind == "tfidf":
        return make_pipeline(TfidfEncoder(**parameters), estimator)
    return make_pipeline(TfidfVectorizer(**parameters), FunctionTransformer(_dense), estimator)


def _dense(rows: Any) -> NDArray[np.float32]:
    return np.asarray(rows.toarray(), dtype=np.float32)


def _parts(encoder: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    parameters = {"kind": _ENCODERS[0], **encoder}
    return known_name("kind", parameters.pop("kind"), _ENCODERS, "encoder"), parameters
