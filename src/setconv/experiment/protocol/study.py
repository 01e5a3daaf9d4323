"""`Study`: data sets, methods, splits and metrics, as a small object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from setconv.errors import ParameterError
from setconv.experiment.protocol.fields import known_name

__all__ = ["METRICS", "DataSpec", "MethodSpec", "Probe", "SearchRule", "SplitRule", "Study"]

# Of one class against the rest; every cell has all of them.
METRICS = (
    *("f1", "g_mean", "auc", "specificity", "sensitivity", "precision"),
    *("average_precision", "balanced_accuracy", "mcc", "brier"),
)
_FIVE = METRICS[:5]
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
    load : str
        The loader; see `LOADERS` in `setconv.experiment.protocol.loading`.
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
    metrics: tuple[str, ...] = _FIVE
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
