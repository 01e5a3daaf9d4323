"""What a study is, the YAML file that describes it, and the figures that others published.

A study is made of frozen dataclasses that check themselves; `read_study` and `read_suite` read it
from a file or by the name of a built-in one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from setconv.errors import DataError, ParameterError
from setconv.messages import did_you_mean, listed, needed

if TYPE_CHECKING:
    import pandas as pd

# Of one class against the rest; every cell has all of them.
METRICS = (
    *("f1", "g_mean", "auc", "specificity", "sensitivity", "precision"),
    *("average_precision", "balanced_accuracy", "mcc", "brier"),
)
_SEARCHED = tuple(name for name in METRICS if name not in ("precision", "brier"))


@dataclass(frozen=True)
class SplitRule:
    """How rows are divided into training, validation and test rows.

    Attributes
    ----------
    parts : tuple of int
        Per cent of the rows: training and test, or training, validation and test. Classes keep
        their shares, groups stay together.
    repeats : int
        Number of random divisions.
    leave_out : str or None
        A class whose groups are left out in turn instead: a group's rows, and of the rows of
        other classes the share of ``parts``, are the test rows. There are as many splits as the
        class has groups.
    """

    parts: tuple[int, ...] = (70, 30)
    repeats: int = 10
    leave_out: str | None = None

    def __post_init__(self) -> None:
        """Refuse parts that are no division."""
        if len(self.parts) not in (2, 3) or sum(self.parts) != 100 or min(self.parts) < 1:
            shown = "/".join(map(str, self.parts))
            raise ParameterError(f"split {shown}: give 70/30, 60/40, 60/10/30 or the like.")
        if self.repeats < 1:
            raise ParameterError(f"repeats={self.repeats!r}: give a number of at least 1.")
        if self.leave_out is not None and len(self.parts) == 3:
            raise ParameterError("leave_out has no validation rows: give parts like 70/30.")


@dataclass(frozen=True)
class DataSpec:
    """A data set of a study.

    Attributes
    ----------
    name : str
    load : {"amazon", "digits", "file", "irt", "named", "npz", "semeval"}
        The loader.
    options : mapping
        What the loader is told: the path, columns, a city.
    binary : str, int or tuple of str, optional
        This class, or these together, against the rest.
    drop : tuple of str
        Classes whose rows are left out.
    report : tuple of str, optional
        The classes that are counted, each against the rest; by default all but the largest.
    size : int, optional
        So many rows, drawn so that the classes keep their shares.
    encoder : mapping, optional
        What makes features of texts; by default the study's.
    source : str, optional
        Data sets of one source are no independent evidence; by default the name.
    split : SplitRule, optional
        Instead of the study's.
    train_ratio : float, optional
        Training rows are thinned so that the largest class has so many rows for one of the
        smallest; test rows are left as they are.
    train_majority : int, optional
        Training rows of the largest class, for ``train_ratio``.
    base : str, optional
        The data set that this is a variant of: both have the same splits.
    """

    name: str
    load: str
    options: Mapping[str, Any] = field(default_factory=dict)
    binary: str | int | tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    report: tuple[str, ...] | None = None
    size: int | None = None
    encoder: Mapping[str, Any] | None = None
    source: str | None = None
    split: SplitRule | None = None
    train_ratio: float | None = None
    train_majority: int | None = None
    base: str | None = None

    def loading(self) -> dict[str, Any]:
        """Return what the rows depend on."""
        names = ("load", "options", "binary", "drop", "size", "encoder")
        return {name: value for name, value in asdict(self).items() if name in names}

    def sweep(self, ratios: tuple[float, ...], majority: int | None) -> list[DataSpec]:
        """Return a variant for each ratio of the training rows."""
        return [
            replace(
                self,
                name=f"{self.name}, ratio {ratio:g}",
                train_ratio=float(ratio),
                train_majority=majority,
                base=self.name,
                source=self.source or self.name,
            )
            for ratio in ratios
        ]


@dataclass(frozen=True)
class MethodSpec:
    """A method of a study.

    Attributes
    ----------
    name : str
        What tables call it.
    method : str, optional
        A name that `method_names` gives; by default ``name``.
    estimator : str, optional
        Instead, the import path of a scikit-learn classifier:
        ``sklearn.ensemble.RandomForestClassifier``.
    parameters : mapping
        Set by ``set_params``.
    search : mapping of str to list
        Values of parameters to choose among by cross-validation inside the training rows.
    ours : bool
        Whether the study is about this method.
    """

    name: str
    method: str | None = None
    estimator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    ours: bool = False


@dataclass(frozen=True)
class SearchRule:
    """Hyper-parameters are chosen by the mean of a metric over stratified folds."""

    folds: int = 10
    metric: str = "g_mean"


@dataclass(frozen=True)
class Probe:
    """What is asked of a fitted SetConv beyond its test rows.

    Attributes
    ----------
    post_sizes : tuple of int
        Sizes of the post-training subset: for each, representatives are made anew.
    draws : int
        Subsets of each size; the metrics are averaged over them. With more than one, it is also
        measured how far representatives move from draw to draw.
    """

    post_sizes: tuple[int, ...] = ()
    draws: int = 1


@dataclass(frozen=True)
class Study:
    """A comparison: every method on every split of every data set.

    Attributes
    ----------
    name, title, about : str
    data : tuple of DataSpec
    methods : tuple of MethodSpec
    split : SplitRule
    metrics : tuple of str
        What tables show, in this order; changing them computes nothing again.
    seed : int
    encoder : mapping
        What makes features of texts.
    search : SearchRule
    probe : Probe
    published : str, optional
        Figures of others that are shown beside: "table4" is that of the paper.
    timeout : float, optional
        Seconds that a cell may take.
    """

    name: str
    data: tuple[DataSpec, ...]
    methods: tuple[MethodSpec, ...]
    title: str = ""
    about: str = ""
    split: SplitRule = SplitRule()
    metrics: tuple[str, ...] = METRICS[:5]
    seed: int = 0
    encoder: Mapping[str, Any] = field(default_factory=dict)
    search: SearchRule = SearchRule()
    probe: Probe = Probe()
    published: str | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse names that occur twice, and metrics that do not exist."""
        for what, named in (("data sets", self.data), ("methods", self.methods)):
            names = [one.name for one in named]
            if not names:
                raise ParameterError(f"study {self.name} has no {what}: give at least one.")
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ParameterError(f"study {self.name} has the {what} {twice} twice.")
        for metric in self.metrics:
            known_name("metric", metric, METRICS, f"study {self.name}")
        known_name("metric to search by,", self.search.metric, _SEARCHED, f"study {self.name}")

    def rule(self, data: DataSpec) -> SplitRule:
        """Return the split rule of a data set."""
        return data.split or self.split

    def text_encoder(self, data: DataSpec) -> dict[str, Any]:
        """Return what makes features of the texts of a data set."""
        return dict(self.encoder if data.encoder is None else data.encoder)

    def choose(
        self, data: tuple[str, ...] | None = None, methods: tuple[str, ...] | None = None
    ) -> Study:
        """Return the study with some of its data sets and methods."""
        chosen = self
        if data:
            bases = {one.base for one in self.data if one.base}
            for name in data:
                known_name("data set", name, [*(one.name for one in self.data), *bases], self.name)
            kept = tuple(one for one in self.data if one.name in data or one.base in data)
            chosen = replace(chosen, data=kept)
        if methods:
            for name in methods:
                known_name("method", name, [one.name for one in self.methods], self.name)
            chosen = replace(
                chosen, methods=tuple(one for one in self.methods if one.name in methods)
            )
        return chosen


@dataclass(frozen=True)
class Suite:
    """Studies that belong together; a single study is a suite of one.

    Attributes
    ----------
    name : str
    studies : tuple of Study
    """

    name: str
    studies: tuple[Study, ...]


def known_name(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the name if it is known; else say which is near and which there are."""
    names = list(known)
    if name in names:
        return name
    place = f"{where}: " if where else ""
    raise ParameterError(
        f"{place}there is no {kind} {name!r}.{did_you_mean(name, names)} "
        f"Choose one of {listed(names)}."
    )


_BUILT_IN = files("setconv.experiment") / "studies"
_ENDINGS = (".yaml", ".yml")


def built_in_studies() -> list[str]:
    """Return the names of the studies that come with the package."""
    names = [Path(one.name) for one in _BUILT_IN.iterdir()]
    return sorted(one.stem for one in names if one.suffix in _ENDINGS)


def read_study(study: str | Path) -> Study:
    """Return the study of a YAML file or of a built-in name.

    Parameters
    ----------
    study : str or Path
        What ends in .yaml or .yml is a file, anything else a name of `built_in_studies`.
    """
    suite = read_suite(study)
    if len(suite.studies) > 1:
        names = ", ".join(one.name for one in suite.studies)
        raise ParameterError(f"{study} is a suite: choose one of its studies, {names}.")
    return suite.studies[0]


@dataclass(frozen=True)
class _SuiteFile:
    studies: tuple[str, ...]
    name: str
    title: str = ""
    about: str = ""


def read_suite(study: str | Path) -> Suite:
    """Return the studies of a YAML file or of a built-in name.

    A suite is a file with the entry ``studies``: a list of built-in names and of files beside it.

    Parameters
    ----------
    study : str or Path
        What ends in .yaml or .yml is a file, anything else a name of `built_in_studies`.
    """
    path = Path(study)
    if path.suffix in _ENDINGS:
        where, name, text = str(path), path.stem, _read_text(path)
    else:
        where = name = known_name("built-in study", str(study), built_in_studies())
        text = (_BUILT_IN / f"{name}.yaml").read_text(encoding="utf-8")
    content = _parse(text, where)
    if not isinstance(content, dict) or "studies" not in content:
        return Suite(name, (parse_study(text, name, where),))
    suite = _from_mapping(_SuiteFile, {"name": name, **content}, where)
    inside = [path.parent / one if Path(one).suffix in _ENDINGS else one for one in suite.studies]
    return Suite(suite.name, tuple(read_study(one) for one in inside))


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"There is no study file {path}: check the path.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error}): save it as UTF-8.") from None


def _parse(text: str, where: str) -> Any:
    with needed("A study file", "PyYAML", "experiment"):
        import yaml  # type: ignore[import-untyped]
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ParameterError(f"{where} is no YAML: {error}.") from None


def parse_study(text: str, name: str, where: str) -> Study:
    """Return the study that a YAML text describes.

    Parameters
    ----------
    text : str
    name : str
        Its name if the text gives none.
    where : str
        What messages call the text.
    """
    top = _mapping(_parse(text, where), where)
    for part in ("data", "methods"):
        if top.get(part) is None:
            raise ParameterError(f"{where} has no {part!r}: give at least one.")
    data = _read_data(top.pop("data"), f"{where}: data")
    methods = _read_methods(top.pop("methods"), f"{where}: methods")
    study = _from_mapping(Study, {"name": name, **top}, where, data=data, methods=methods)
    return replace(study, about=" ".join(study.about.split()))


# What else a data set has is for its loader, which knows what it can be told.
_OF_DATA = ("load", "binary", "drop", "report", "size", "encoder", "source", "split")


@dataclass(frozen=True)
class _Sweep:
    ratios: tuple[float, ...]
    majority: int | None = None


def _read_data(entries: Any, where: str) -> tuple[DataSpec, ...]:
    found: list[DataSpec] = []
    for name, entry in _mapping(entries, where).items():
        place = f"{where}.{name}"
        values = _mapping(entry, place)
        sweep = values.pop("sweep", None)
        own = {key: value for key, value in values.items() if key in _OF_DATA}
        options = {key: value for key, value in values.items() if key not in _OF_DATA}
        spec = _from_mapping(DataSpec, own, place, name=name, options=options)
        if sweep is None:
            found.append(spec)
        else:
            rule = _from_mapping(_Sweep, sweep, f"{place}.sweep")
            found += spec.sweep(rule.ratios, rule.majority)
    return tuple(found)


def _read_methods(entries: Any, where: str) -> tuple[MethodSpec, ...]:
    if isinstance(entries, list):  # names alone
        entries = dict.fromkeys(map(str, entries))
    if not isinstance(entries, dict):
        raise ParameterError(f"{where}: give a list of names, or a mapping of names to settings.")
    return tuple(
        _from_mapping(MethodSpec, entry, f"{where}.{name}", name=str(name))
        for name, entry in entries.items()
    )


_T = TypeVar("_T")
_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a mapping of names to values",
}


def _from_mapping(kind: type[_T], values: Any, where: str, **given: Any) -> _T:
    """Return a dataclass whose fields are the entries of a mapping.

    Parameters
    ----------
    kind : type
        A dataclass; entries must be of the types of its fields.
    values : mapping, str or None
        A text is the value of the first field; None has no entries.
    where : str
        How messages call the place, such as ``data.SemEval``.
    **given
        Fields that the mapping cannot have.
    """
    own = [one for one in fields(kind) if one.name not in given]  # type: ignore[arg-type]
    values = _mapping({own[0].name: values} if isinstance(values, str) else values, where)
    hints = get_type_hints(kind)
    names = [one.name for one in own]
    for name in values:
        if name not in names:
            raise ParameterError(
                f"{where} has an entry {name!r} that means nothing."
                f"{did_you_mean(name, names)} The entries are {listed(names)}."
            )
    for one in own:
        if one.name not in values and one.default is one.default_factory is MISSING:
            raise ParameterError(f"{where} has no {one.name!r}: give it.")
    read = {
        name: _read_value(value, hints[name], f"{where}.{name}") for name, value in values.items()
    }
    return kind(**given, **read)


def _read_value(value: Any, hint: Any, where: str) -> Any:
    """Return a value as its field has it; lists become tuples, whole numbers numbers."""
    # A union such as str | None has its members as arguments, and so has a tuple its items.
    members = get_args(hint) if get_origin(hint) not in (tuple, Mapping) else ()
    if value is None and NoneType in members:
        return None
    for one in members or (hint,):
        kind = get_origin(one) or one
        if is_dataclass(kind) and isinstance(kind, type):
            return _from_mapping(kind, value, where)
        if kind is tuple and isinstance(value, list):
            item = get_args(one)[0]
            return tuple(
                str(part) if item is str else _read_value(part, item, f"{where}[{place}]")
                for place, part in enumerate(value)
            )
        if one == tuple[int, ...] and isinstance(value, str):
            if not all(part.isdecimal() for part in value.split("/")):
                raise ParameterError(f"{where} is {value!r}: give per cent, such as 70/30.")
            return tuple(map(int, value.split("/")))
        if kind is float and type(value) is int:
            return float(value)
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
    kinds = [get_origin(one) or one for one in members or (hint,)]
    wanted = " or ".join(_KINDS[kind] for kind in kinds if kind is not NoneType)
    raise ParameterError(f"{where} is {value!r}: give {wanted}.")


def _mapping(values: Any, where: str) -> dict[str, Any]:
    """Return a mapping with names of text, empty for None; refuse anything else."""
    if not isinstance(values, Mapping | None):
        raise ParameterError(f"{where}: {values!r} is no mapping of names to values.")
    return {str(name): value for name, value in (values or {}).items()}


_PUBLISHED = files("setconv.experiment") / "published"
_COUNTS = "class_counts"
_COLUMNS = ["unit", "method", "metric", "mean", "deviation"]


def published_figures(name: str | None) -> pd.DataFrame:
    """Return a table of published figures: unit, method, metric, mean and deviation.

    Parameters
    ----------
    name : str or None
        None gives a table without rows.
    """
    with needed("Published figures", "pandas", "experiment"):
        import pandas as pd
    if name is None:
        return pd.DataFrame(columns=_COLUMNS)
    tables = sorted(one.name.removesuffix(".csv") for one in _PUBLISHED.iterdir())
    known_name("table of published figures", name, [one for one in tables if one != _COUNTS])
    with (_PUBLISHED / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


def published_counts(dataset: str, n_classes: int) -> dict[str, int]:
    """Return the rows of each class that the paper's tables 1 and 2 give; empty for other sets.

    Parameters
    ----------
    dataset : str
        As the built-in studies call it, such as "Boston" or "Amazon-Books".
    n_classes : int
        2, or 4 for the four classes of incidents.
    """
    name = dataset if n_classes == 2 else f"{dataset} (four classes)"
    text = (_PUBLISHED / f"{_COUNTS}.csv").read_text(encoding="utf-8")
    lines = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {one["label"]: int(one["rows"]) for one in lines if one["dataset"] == name}
