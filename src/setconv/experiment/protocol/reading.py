"""A study from a YAML file, or a built-in one by its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from setconv.errors import DataError, ParameterError
from setconv.experiment.protocol.fields import from_mapping, known_name, mapping
from setconv.experiment.protocol.study import DataSpec, MethodSpec, Study
from setconv.needs import needed

__all__ = ["Suite", "built_in_studies", "parse_study", "read_study", "read_suite"]

_BUILT_IN = files("setconv.experiment") / "studies"
_ENDINGS = (".yaml", ".yml")
# What else a data set has is for its loader, which knows what it can be told.
_OF_DATA = ("load", "binary", "drop", "report", "size", "encoder", "source", "split")


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


@dataclass(frozen=True)
class _SuiteFile:
    studies: tuple[str, ...]
    name: str
    title: str = ""
    about: str = ""


@dataclass(frozen=True)
class _Sweep:
    ratios: tuple[float, ...]
    majority: int | None = None


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
    suite = from_mapping(_SuiteFile, {"name": name, **content}, where)
    inside = [path.parent / one if Path(one).suffix in _ENDINGS else one for one in suite.studies]
    return Suite(suite.name, tuple(read_study(one) for one in inside))


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
    top = mapping(_parse(text, where), where)
    for part in ("data", "methods"):
        if top.get(part) is None:
            raise ParameterError(f"{where} has no {part!r}: give at least one.")
    data = _read_data(top.pop("data"), f"{where}: data")
    methods = _read_methods(top.pop("methods"), f"{where}: methods")
    study = from_mapping(Study, {"name": name, **top}, where, data=data, methods=methods)
    return replace(study, about=" ".join(study.about.split()))


def _read_data(entries: Any, where: str) -> tuple[DataSpec, ...]:
    found: list[DataSpec] = []
    for name, entry in mapping(entries, where).items():
        place = f"{where}.{name}"
        values = mapping(entry, place)
        sweep = values.pop("sweep", None)
        own = {key: value for key, value in values.items() if key in _OF_DATA}
        options = {key: value for key, value in values.items() if key not in _OF_DATA}
        spec = from_mapping(DataSpec, own, place, name=name, options=options)
        if sweep is None:
            found.append(spec)
        else:
            rule = from_mapping(_Sweep, sweep, f"{place}.sweep")
            found += spec.sweep(rule.ratios, rule.majority)
    return tuple(found)


def _read_methods(entries: Any, where: str) -> tuple[MethodSpec, ...]:
    if isinstance(entries, list):  # names alone
        entries = dict.fromkeys(map(str, entries))
    if not isinstance(entries, dict):
        raise ParameterError(f"{where}: give a list of names, or a mapping of names to settings.")
    return tuple(
        from_mapping(MethodSpec, entry, f"{where}.{name}", name=str(name))
        for name, entry in entries.items()
    )
