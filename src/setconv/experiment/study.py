"""What a study is, and the YAML file that describes it.

A study is made of frozen dataclasses that check themselves. `from_mapping` makes any of them from
entries of a file; `read_study` and `read_studies` find the file, or the one of a built-in name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from setconv.errors import ParameterError
from setconv.messages import check_integer, did_you_mean, listed, needed

# Of one class against the rest; every cell has all of them.
METRICS = (
    *("f1", "g_mean", "auc", "specificity", "sensitivity", "precision"),
    *("average_precision", "balanced_accuracy", "mcc", "brier"),
)
_SEARCHED = tuple(name for name in METRICS if name not in ("precision", "brier"))
PUBLISHED, _BUILT_IN = (Path(__file__).with_name(name) for name in ("published", "studies"))
_ENDINGS = (".yaml", ".yml")
_LARGEST = 1 << 18  # bytes of a file
_DEEPEST = 20  # mappings and lists within one another
_LARGEST_NUMBER = 1 << 1000  # that a float can be


@dataclass(frozen=True)
class SplitRule:
    """How rows are divided into training and test rows.

    Attributes
    ----------
    parts : tuple of int
        Per cent of the rows: training and test. Classes keep their shares, groups and copies stay
        together.
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
        if len(self.parts) != 2 or sum(self.parts) != 100 or min(self.parts) < 1:
            raise ParameterError(f"parts={self.parts}: give 70/30 or the like.", parameter="parts")
        check_integer("repeats", self.repeats, least=1)


@dataclass(frozen=True)
class Sweep:
    """Ratios of the training rows, and the training rows of the largest class (all by default)."""

    ratios: tuple[float, ...]
    majority: int | None = None


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
    sweep : Sweep, optional
        A study has a variant for each of these ratios instead of the data set.
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
    sweep: Sweep | None = None
    train_ratio: float | None = None
    train_majority: int | None = None
    base: str | None = None

    def variants(self) -> list[DataSpec]:
        """Return a data set for each ratio of the sweep; itself if there is none."""
        if self.sweep is None:
            return [self]
        source, majority = self.source or self.name, self.sweep.majority
        whole = replace(self, sweep=None, base=self.name, source=source, train_majority=majority)
        return [
            replace(whole, name=f"{self.name}, ratio {ratio:g}", train_ratio=float(ratio))
            for ratio in self.sweep.ratios
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
        The title is the name if there is none.
    data : tuple of DataSpec
        Those with a sweep become their variants.
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
        """Refuse names that occur twice, and metrics and tables that do not exist."""
        object.__setattr__(self, "title", self.title or self.name)
        variants = tuple(variant for one in self.data for variant in one.variants())
        object.__setattr__(self, "data", variants)
        for what, named in (("data sets", self.data), ("methods", self.methods)):
            names = [one.name for one in named]
            if not names or len(set(names)) < len(names):
                raise ParameterError(f"{self.name}: give {what}, and no name of them twice.")
        for metric in self.metrics:
            known_name("metric", metric, METRICS, self.name)
        known_name("metric to search by,", self.search.metric, _SEARCHED, self.name)
        if self.published is not None:
            known_name("table of published figures", self.published, ["table4"], self.name)

    @property
    def ours(self) -> list[str]:
        """The methods that the study is about: the first is compared with all others."""
        return [one.name for one in self.methods if one.ours] or [self.methods[0].name]

    def rule(self, data: DataSpec) -> SplitRule:
        """Return the split rule of a data set."""
        return data.split or self.split

    def text_encoder(self, data: DataSpec) -> dict[str, Any]:
        """Return what makes features of the texts of a data set."""
        return dict(self.encoder if data.encoder is None else data.encoder)

    def choose(self, data: Iterable[str] = (), methods: Iterable[str] = ()) -> Study:
        """Return the study with some of its data sets and methods; none given are all."""
        known = [name for one in self.data for name in (one.name, one.base) if name]
        sets = [known_name("data set", one, known, self.name) for one in data]
        names = [one.name for one in self.methods]
        wanted = [known_name("method", one, names, self.name) for one in methods] or names
        some = tuple(one for one in self.data if not sets or {one.name, one.base} & set(sets))
        chosen = tuple(one for one in self.methods if one.name in wanted)
        return replace(self, data=some, methods=chosen)


def known_name(kind: str, name: str, known: Iterable[str], where: str) -> str:
    """Return the name if it is known; else say which is near and which there are."""
    names = list(known)
    if name in names:
        return name
    told = f"{where}: there is no {kind} {name!r}.{did_you_mean(name, names)}"
    raise ParameterError(told, hint=f"Choose one of {listed(names)}.")


def built_in_studies() -> list[str]:
    """Return the names of the studies that come with the package."""
    return sorted(one.stem for one in _BUILT_IN.iterdir())


def read_study(study: str | Path) -> Study:
    """Return the study of a YAML file or of a built-in name.

    Parameters
    ----------
    study : str or Path
        What ends in .yaml or .yml is a file, anything else a name of `built_in_studies`.
    """
    found = read_studies(study)
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise ParameterError(f"{study} has several studies: choose one of {names}.")
    return found[0]


def read_studies(study: str | Path) -> tuple[Study, ...]:
    """Return the studies of a YAML file or of a built-in name.

    A file has one, or the entry ``studies``: a list of built-in names and of files beside it.

    Parameters
    ----------
    study : str or Path
        What ends in .yaml or .yml is a file, anything else a name of `built_in_studies`.
    """
    return _read_list(study, ())


def _read_list(study: str | Path, within: tuple[Path, ...]) -> tuple[Study, ...]:
    """Return the studies of a file that stands in the lists of the files ``within``."""
    path = Path(study)
    if path.suffix in _ENDINGS:
        if not os.path.isfile(path):  # noqa: PTH113 - of any name
            raise FileNotFoundError(f"There is no study file {path}: check the path.")
        if path.resolve() in within:
            raise ParameterError(f"{path} lists itself among its studies: take it out.")
        where, content = str(path), path.read_bytes()
    else:
        where = known_name("built-in study", path.name, built_in_studies(), "studies")
        content = (_BUILT_IN / f"{where}.yaml").read_bytes()
    entries = _mapping(_parse(content, where), where)
    if "studies" not in entries:
        return (from_mapping(Study, {"name": path.stem, **entries}, where),)
    inside = from_mapping(_StudyList, entries, where).studies
    places = [path.parent / one if Path(one).suffix in _ENDINGS else one for one in inside]
    return tuple(one for place in places for one in _read_list(place, (*within, path.resolve())))


@dataclass(frozen=True)
class _StudyList:
    studies: tuple[str, ...]
    title: str = ""
    about: str = ""


def _parse(content: bytes, where: str) -> Any:
    with needed("A study file", "PyYAML", "experiment"):
        import yaml  # type: ignore[import-untyped]
    if len(content) > _LARGEST:
        raise ParameterError(f"{where} is larger than {_LARGEST >> 10} KB, which no study is.")
    depth = 0
    try:
        for event in yaml.parse(content, yaml.SafeLoader):
            line = f"{where}, line {event.start_mark.line + 1}"
            if isinstance(event, yaml.AliasEvent):  # may refer to itself, or grow without end
                raise ParameterError(f"{line}: write out what *{event.anchor} stands for.")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ParameterError(f"{line}: nested too deeply for a study.")
        nodes = [yaml.compose(content, yaml.SafeLoader)]
        for node in nodes:  # YAML itself keeps the last of two entries, without a word
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            names = Counter(str(key.value) for key, _ in pairs)
            if twice := [name for name, count in names.items() if count > 1]:
                line = f"{where}, line {node.start_mark.line + 1}"
                raise ParameterError(f"{line}: {listed(twice)} is given twice: leave one out.")
            nodes += [value for _, value in pairs]
            nodes += node.value if isinstance(node, yaml.SequenceNode) else ()
        return yaml.safe_load(content)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: of a date or a number
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{where} is no YAML: {error}.") from None


_T = TypeVar("_T")
_KINDS: dict[Any, str] = {
    **{str: "text", int: "a whole number", float: "a number", bool: "true or false"},
    **{tuple: "a list", Mapping: "a mapping of names to values"},
}


def from_mapping(kind: type[_T], values: Any, where: str, **given: Any) -> _T:
    """Return a dataclass whose fields are the entries of a mapping.

    Parameters
    ----------
    kind : type
        A dataclass; entries must be of the types of its fields. If it has the field ``options``,
        that has the entries which are no field.
    values : mapping, str or None
        A text is the value of the first field; None has no entries.
    where : str
        How messages call the place, such as ``data.SemEval``.
    **given
        Fields that the mapping cannot have.
    """
    own = {one.name: one for one in fields(kind) if one.name not in given}  # type: ignore[arg-type]
    entries = _mapping({next(iter(own)): values} if isinstance(values, str) else values, where)
    if own.pop("options", None):
        given["options"] = {name: entries.pop(name) for name in [*entries] if name not in own}
    for name in entries:
        known_name("entry", name, own, where)
    for name, one in own.items():
        if name not in entries and one.default is one.default_factory is MISSING:
            raise ParameterError(f"{where} has no {name!r}: give it.", parameter=name)
    hints = get_type_hints(kind)
    read = {name: _read(value, hints[name], f"{where}.{name}") for name, value in entries.items()}
    return kind(**given, **read)


def _read(value: Any, hint: Any, where: str) -> Any:
    """Return a value as its field has it; lists become tuples, whole numbers numbers."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if value is None and NoneType in kinds:
        return None
    for one in kinds:
        kind = get_origin(one) or one
        if is_dataclass(kind) and isinstance(kind, type):
            return from_mapping(kind, value, where)
        if kind is tuple and (items := _read_items(value, get_args(one)[0], where)) is not None:
            return items
        if kind is float and type(value) is int and abs(value) < _LARGEST_NUMBER:
            return float(value)
        if isinstance(value, kind) and isinstance(value, bool) is (kind is bool):
            return value
    wanted = " or ".join(_KINDS[get_origin(one) or one] for one in kinds if one is not NoneType)
    name = where.rpartition(".")[2]
    raise ParameterError(f"{where} is {value!r}: give {wanted}.", parameter=name)


def _read_items(value: Any, kind: Any, where: str) -> tuple[Any, ...] | None:
    """Return the items of a list, of "70/30", or of a mapping that names them; else None."""
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, list | dict):
        if any(isinstance(one, list | dict) for one in value):
            raise ParameterError(f"{where}: give names, or a mapping of names to entries.")
        named = value if isinstance(value, dict) else dict.fromkeys(value)
        if isinstance(value, list) and len(named) < len(value):
            twice = listed([str(one) for one in named if value.count(one) > 1])
            hint = "Leave one out, or give each a name of its own."
            raise ParameterError(f"{where} has {twice} twice.", hint=hint)
        return tuple(
            from_mapping(kind, entry, f"{where}.{name}", name=str(name))
            for name, entry in named.items()
        )
    if kind is int and isinstance(value, str) and all(map(str.isdecimal, value.split("/"))):
        return tuple(map(int, value.split("/")))
    if not isinstance(value, list):
        return None
    return tuple(
        str(item) if kind is str else _read(item, kind, f"{where}[{place}]")
        for place, item in enumerate(value)
    )


def _mapping(values: Any, where: str) -> dict[str, Any]:
    """Return a mapping with names of text, empty for None; refuse anything else."""
    if not isinstance(values, Mapping | None):
        raise ParameterError(f"{where}: {values!r} is no mapping of names to values.")
    return {str(name): value for name, value in (values or {}).items()}
