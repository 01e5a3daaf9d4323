"""A study from a YAML file, or a built-in one by its name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from setconv.errors import DataError, ParameterError
from setconv.experiment.protocol.fields import Fields, known_name
from setconv.experiment.protocol.study import (
    METRICS,
    DataSpec,
    MethodSpec,
    Probe,
    SearchRule,
    SplitRule,
    Study,
)
from setconv.needs import needed

__all__ = ["Suite", "built_in_studies", "parse_study", "read_study", "read_suite"]

_BUILT_IN = files("setconv.experiment") / "studies"
_ENDINGS = (".yaml", ".yml")


def built_in_studies() -> list[str]:
    """Return the names of the studies that come with the package."""
    names = [Path(one.name) for one in _BUILT_IN.iterdir()]
    return sorted(one.stem for one in names if one.suffix in _ENDINGS)


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
        where, name, text = str(path), path.stem, _read(path)
    else:
        where = name = known_name("built-in study", str(study), built_in_studies())
        text = (_BUILT_IN / f"{name}.yaml").read_text(encoding="utf-8")
    content = _parse(text, where)
    if not isinstance(content, dict) or "studies" not in content:
        return Suite(name, (parse_study(text, name, where),))
    top = Fields(content, where)
    parts = [str(one) for one in top.take("studies", list, ...)]
    name = top.take("name", str, name)
    for told in ("title", "about"):
        top.take(told, str, "")
    top.finish()
    inside = [path.parent / one if Path(one).suffix in _ENDINGS else one for one in parts]
    return Suite(name, tuple(read_study(one) for one in inside))


def _read(path: Path) -> str:
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
    top = Fields(_parse(text, where), where)
    study = Study(
        name=top.take("name", str, name),
        title=top.take("title", str, ""),
        about=" ".join(top.take("about", str, "").split()),
        data=_read_data(top.take("data", dict, ...), f"{where}: data"),
        methods=_read_methods(top.raw("methods"), f"{where}: methods"),
        split=_read_split(top.raw("split"), f"{where}: split") or SplitRule(),
        metrics=tuple(top.take("metrics", list, list(METRICS[:5]))),
        seed=top.take("seed", int, 0),
        encoder=top.take("encoder", dict, {}),
        search=_read_search(top.raw("search"), f"{where}: search"),
        probe=_read_probe(top.raw("probe"), f"{where}: probe"),
        published=top.take("published", str),
        timeout=top.take("timeout", float),
    )
    top.finish()
    return study


def _read_data(entries: dict[str, Any], where: str) -> tuple[DataSpec, ...]:
    found: list[DataSpec] = []
    for name, entry in entries.items():
        fields = Fields(entry, f"{where}.{name}")
        sweep = fields.raw("sweep")
        binary = fields.raw("binary")
        report = fields.take("report", list, [])
        spec = DataSpec(
            name=str(name),
            load=fields.take("load", str, ...),
            binary=tuple(map(str, binary)) if isinstance(binary, list) else binary,
            drop=tuple(map(str, fields.take("drop", list, []))),
            report=tuple(map(str, report)) or None,
            size=fields.take("size", int),
            encoder=fields.take("encoder", dict),
            source=fields.take("source", str),
            split=_read_split(fields.raw("split"), f"{where}.{name}.split"),
            options=fields.rest(),  # the loader knows what it can be told
        )
        if sweep is None:
            found.append(spec)
        else:
            rule = Fields(sweep, f"{where}.{name}.sweep")
            ratios = tuple(map(float, rule.take("ratios", list, ...)))
            found += spec.sweep(ratios, rule.take("majority", int))
            rule.finish()
    return tuple(found)


def _read_methods(entries: Any, where: str) -> tuple[MethodSpec, ...]:
    if isinstance(entries, list):  # names alone
        entries = dict.fromkeys(map(str, entries), None)
    if not isinstance(entries, dict):
        raise ParameterError(f"{where}: give a list of names, or a mapping of names to settings.")
    found = []
    for name, entry in entries.items():
        fields = Fields(entry, f"{where}.{name}")
        spec = MethodSpec(
            name=str(name),
            method=fields.take("method", str),
            estimator=fields.take("estimator", str),
            parameters=fields.take("parameters", dict, {}),
            search=fields.take("search", dict, {}),
            ours=fields.take("ours", bool, False),
        )
        fields.finish()
        found.append(spec)
    return tuple(found)


def _read_split(entry: Any, where: str) -> SplitRule | None:
    if entry is None:
        return None
    fields = Fields({"parts": entry} if isinstance(entry, str) else entry, where)
    parts = fields.take("parts", str, "70/30")
    try:
        numbers = tuple(int(part) for part in parts.split("/"))
    except ValueError:
        raise ParameterError(f"{where} is {parts!r}: give per cent, such as 70/30.") from None
    rule = SplitRule(numbers, fields.take("repeats", int, 10), fields.take("leave_out", str))
    fields.finish()
    return rule


def _read_search(entry: Any, where: str) -> SearchRule:
    fields = Fields(entry, where)
    rule = SearchRule(fields.take("folds", int, 10), fields.take("metric", str, "g_mean"))
    fields.finish()
    return rule


def _read_probe(entry: Any, where: str) -> Probe:
    fields = Fields(entry, where)
    probe = Probe(tuple(fields.take("post_sizes", list, [])), fields.take("draws", int, 1))
    fields.finish()
    return probe
