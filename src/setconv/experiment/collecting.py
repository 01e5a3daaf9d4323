"""From the store to findings: the figures of the cells that the study has now."""

from __future__ import annotations

from dataclasses import asdict

from setconv.experiment.answers.findings import Findings, Unit
from setconv.experiment.protocol.computing import reported_classes
from setconv.experiment.protocol.measuring import read_key
from setconv.experiment.protocol.prepared import Prepared
from setconv.experiment.protocol.published import published_counts, published_figures
from setconv.experiment.protocol.study import DataSpec, Study
from setconv.experiment.running.cells import Cell
from setconv.experiment.running.store import Store
from setconv.needs import needed

__all__ = ["SWEEP", "collect"]

SWEEP = "imbalance ratio of the training rows"
_CELL = ["dataset", "method", "split", "version"]
_SCORES = ["unit", "method", "split", "metric", "value"]
_CURVES = ["curve", "unit", "method", "split", "metric", "setting", "value"]


def collect(
    study: Study, prepared: dict[str, Prepared], cells: list[Cell], store: Store, command: str
) -> Findings:
    """Return the findings of these cells; cells of earlier versions of the study do not count."""
    with needed("The findings of a study", "pandas", "experiment"):
        import pandas as pd
    wanted = pd.DataFrame([asdict(cell) for cell in cells], columns=_CELL)
    frame = store.cells().merge(wanted, on=_CELL)
    rows = store.results().merge(frame[_CELL[:3]], on=_CELL[:3])
    specs = {one.name: one for one in study.data}
    units = _units(study, prepared)
    names = {(one.dataset, one.label): one.name for one in units}
    scores, curves = [], []
    for dataset, method, split, metric, value in rows.itertuples(index=False):
        parts = read_key(metric)
        if parts is None or (dataset, parts[1]) not in names:
            continue
        name, label, curve, setting = parts
        spec = specs[dataset]
        if curve:
            curves.append((curve, names[dataset, label], method, split, name, setting, value))
            continue
        scores.append((names[dataset, label], method, split, name, value))
        if spec.base is not None and spec.train_ratio is not None:
            of = _unit_name(spec.base, label, spec, prepared[dataset])
            curves.append((SWEEP, of, method, split, name, spec.train_ratio, value))
    return Findings(
        name=study.name,
        title=study.title or study.name,
        about=study.about,
        command=command,
        methods=tuple(one.name for one in study.methods),
        ours=_ours(study),
        metrics=study.metrics,
        units=tuple(units),
        scores=pd.DataFrame(scores, columns=_SCORES),
        curves=pd.DataFrame(curves, columns=_CURVES),
        published=published_figures(study.published),
        cells=frame,
        missing=len(cells) - len(frame),
        notes=_notes(study, prepared),
    )


def _ours(study: Study) -> tuple[str, ...]:
    named = tuple(one.name for one in study.methods if one.ours)
    return named or (study.methods[0].name,)


def _units(study: Study, prepared: dict[str, Prepared]) -> list[Unit]:
    units = []
    for spec in study.data:
        known = prepared[spec.name]
        total = sum(known.counts.values())
        for label in reported_classes(spec, known.counts):
            mine = known.counts[label]
            parts = study.rule(spec).parts
            units.append(
                Unit(
                    name=_unit_name(spec.name, label, spec, known),
                    dataset=spec.name,
                    label=label,
                    imbalance_ratio=spec.train_ratio or (total - mine) / mine,
                    n_rows=total,
                    source=spec.source or spec.name,
                    test_share=parts[-1] / parts[0],
                )
            )
    return units


def _unit_name(name: str, label: str, spec: DataSpec, known: Prepared) -> str:
    several = len(reported_classes(spec, known.counts)) > 1
    return f"{name}: {label}" if several else name


def _notes(study: Study, prepared: dict[str, Prepared]) -> tuple[str, ...]:
    """Say where the rows come from, once a data set."""
    told: dict[str, str] = {}
    for spec in study.data:
        known = prepared[spec.name]
        parts = (known.provenance, known.licence, _beside_the_paper(spec, known))
        if text := " ".join(part for part in parts if part):
            told.setdefault(spec.base or spec.name, text)
    return tuple(f"{name}: {text}" for name, text in told.items())


def _beside_the_paper(spec: DataSpec, known: Prepared) -> str:
    """Say how many rows the paper had, for the benchmarks that it used."""
    if spec.load not in ("amazon", "irt", "semeval"):
        return ""
    theirs = published_counts(spec.name, len(known.counts))
    if not theirs:
        return ""
    shown = [
        ", ".join(f"{count:,}" for count in sorted(counts.values(), reverse=True))
        for counts in (theirs, known.counts)
    ]
    return f"Rows of the classes in the paper: {shown[0]}; here: {shown[1]}."
