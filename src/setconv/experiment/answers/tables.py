"""The scores of a study in tables: a block for each unit, or a table for each metric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import higher_is_better, metric_name
from setconv.experiment.answers.table_entries import (
    Entry,
    Key,
    measured_entries,
    published_entries,
    scores_by_split,
)
from setconv.experiment.answers.table_sheet import Sheet, SheetRow, Shown, aligned
from setconv.experiment.answers.table_standing import Standing, standing
from setconv.experiment.answers.table_texts import LOWER, caption, notes

__all__ = ["Block", "Row", "ScoreTable", "by_metric", "by_unit", "published_elsewhere"]

_NONE = Entry(math.nan, math.nan, 0, kind="none")


@dataclass(frozen=True)
class Row:
    """A method in a table of scores.

    Attributes
    ----------
    name : str
    entries : tuple of Entry
    more : tuple of str
        What follows the entries: the average rank, in a table that has it.
    published : bool
        Reported by others, not measured here.
    """

    name: str
    entries: tuple[Entry, ...]
    more: tuple[str, ...] = ()
    published: bool = False


@dataclass(frozen=True)
class Block:
    """Rows that belong together; the name is shown where a table has several blocks."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ScoreTable:
    """Means and deviations, methods in rows.

    Attributes
    ----------
    title, caption : str
    head : tuple of str
        What the columns after the method are.
    blocks : tuple of Block
    notes : tuple of str
    """

    title: str
    caption: str
    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all blocks."""
        return tuple(row for block in self.blocks for row in block.rows)

    def sheet(self) -> Sheet:
        """Return the table as text."""
        before = ("unit", "method") if len(self.blocks) > 1 else ("method",)
        lines: list[SheetRow] = []
        for block in self.blocks:
            above = None
            for row in block.rows:
                names = (row.name,) if len(before) == 1 else ("" if above else block.name, row.name)
                cells = (
                    *map(Shown, names),
                    *(entry.shown for entry in row.entries),
                    *map(Shown, row.more),
                )
                new = row.published and not above.published if above else bool(lines)
                lines.append(SheetRow(cells, rule=new))
                above = row
        return Sheet(
            self.title,
            self.caption,
            (*before, *self.head),
            aligned(len(before), len(self.head)),
            tuple(lines),
            self.notes,
        )


def by_unit(findings: Findings) -> list[ScoreTable]:
    """Return a table for each data set, as Table 4 of the paper: a block a unit, metrics across."""
    measured, published = measured_entries(findings), published_entries(findings)
    tables = []
    for dataset in dict.fromkeys(unit.dataset for unit in findings.units):
        blocks = []
        for unit in findings.units:
            if unit.dataset == dataset:
                columns = [(unit.name, metric) for metric in findings.metrics]
                rows = [
                    *_measured_rows(findings, columns, measured),
                    *_published_rows(columns, published),
                ]
                blocks.append(Block(unit.title, tuple(rows)))
        title = blocks[0].name if len(blocks) == 1 else dataset
        tables.append(_table(findings, title, _metric_heads(findings), blocks))
    return tables


def by_metric(findings: Findings) -> list[ScoreTable]:
    """Return a table for each metric: units across, then the average rank over units."""
    measured, published = measured_entries(findings), published_entries(findings)
    by_split = scores_by_split(findings)
    tables = []
    for metric in findings.metrics:
        columns = [(unit.name, metric) for unit in findings.units]
        found = standing(findings, metric, by_split)
        head = [unit.title for unit in findings.units]
        ranks: dict[str, tuple[str, ...]] = {}
        blank: tuple[str, ...] = ()
        if isinstance(found, Standing):
            head, blank = [*head, "rank"], ("",)
            ranks = {str(name): (f"{rank:.2f}",) for name, rank in found.ranks.average.items()}
        rows = [
            *_measured_rows(findings, columns, measured, ranks, blank),
            *_published_rows(columns, published, blank),
        ]
        remarks = found.notes if isinstance(found, Standing) else ()
        blocks = [Block("", tuple(rows))]
        tables.append(_table(findings, _heading(metric), head, blocks, remarks))
    return tables


def published_elsewhere(findings: Findings) -> ScoreTable | None:
    """Return the published figures of units that are not in this study; None if there are none."""
    published = published_entries(findings)
    here = {unit.name for unit in findings.units}
    blocks = [
        Block(unit, tuple(rows))
        for unit in dict.fromkeys(key.unit for key in published if key.unit not in here)
        if (rows := _published_rows([(unit, metric) for metric in findings.metrics], published))
    ]
    if not blocks:
        return None
    return ScoreTable(
        "Published figures of other data" + (f": {blocks[0].name}" if len(blocks) == 1 else ""),
        "Reported by others on data that is not in this study. These figures cannot be compared "
        "with those above.",
        tuple(_metric_heads(findings)),
        tuple(blocks),
    )


def _table(
    findings: Findings,
    title: str,
    head: Sequence[str],
    blocks: Sequence[Block],
    remarks: Sequence[str] = (),
) -> ScoreTable:
    entries = [entry for block in blocks for row in block.rows for entry in row.entries]
    lower = any(LOWER in text for text in (title, *head))
    return ScoreTable(
        title,
        caption(findings, entries, lower),
        tuple(head),
        tuple(blocks),
        (*notes(entries), *remarks),
    )


def _measured_rows(
    findings: Findings,
    columns: Sequence[tuple[str, str]],
    entries: Mapping[Key, Entry],
    more: Mapping[str, tuple[str, ...]] | None = None,
    blank: tuple[str, ...] = (),
) -> list[Row]:
    return [
        Row(
            method,
            tuple(entries[Key(unit, method, metric)] for unit, metric in columns),
            (more or {}).get(method, blank),
        )
        for method in findings.methods
    ]


def _published_rows(
    columns: Sequence[tuple[str, str]], entries: Mapping[Key, Entry], blank: tuple[str, ...] = ()
) -> list[Row]:
    """Return a row for each method that others report any of the columns of."""
    shown = set(columns)
    methods = dict.fromkeys(key.method for key in entries if (key.unit, key.metric) in shown)
    return [
        Row(
            f"{method} (published)",
            tuple(entries.get(Key(unit, method, metric), _NONE) for unit, metric in columns),
            blank,
            published=True,
        )
        for method in methods
    ]


def _metric_heads(findings: Findings) -> list[str]:
    return [_heading(metric) for metric in findings.metrics]


def _heading(metric: str) -> str:
    return metric_name(metric) + ("" if higher_is_better(metric) else f" {LOWER}")
