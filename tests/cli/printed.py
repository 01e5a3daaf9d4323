"""What the commands leave, as data: tables of figures, CSV files, pages."""

import csv
import math
import re
from html import unescape

HEAD = ["Spec", "Sens", "Precision", "F1", "G-mean", "AUC", "AP"]


def read_table(out):
    """Return the figures of each class as a terminal shows them; nan for n/a."""
    return {label: values for label, (values, _) in _read_lines(out).items()}


def read_intervals(out):
    """Return the intervals below the figures of each class; None where there is none."""
    return {label: bounds for label, (_, bounds) in _read_lines(out).items()}


def _read_lines(out):
    lines = out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.split()[:1] == ["class"])
    assert lines[start].split()[-len(HEAD) :] == HEAD
    # Columns end where their headings do.
    ends = [re.search(rf"{re.escape(name)}(?=\s|$)", lines[start]).end() for name in HEAD]
    found, label = {}, None
    for line in lines[start + 2 :]:
        if not line.strip():
            return found
        cells = [line[a:b].strip() for a, b in zip([ends[0] - 9, *ends], ends, strict=False)]
        if line[1] != " ":
            label = line.split()[0]
            values = [math.nan if one == "n/a" else float(one.split()[-1]) for one in cells]
            found[label] = (values, [None] * len(HEAD))
        else:
            bounds = [tuple(map(float, one.split("-"))) if one else None for one in cells]
            found[label] = (found[label][0], bounds)
    raise AssertionError(out)


def read_rows(path):
    """Return the rows of a CSV file as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page_figures(html):
    """Return the figures of the first table of a page, in the order of `HEAD`."""
    cell = '<th scope="row">{}</th><td class="n value">([0-9.]+)</td>'
    return [float(re.search(cell.format(name), html)[1]) for name in HEAD]


def page_mistakes(html):
    """Return truth, decision and name of each row that a page shows as a mistake."""
    part = html[html.index('<section id="mistakes">') :]
    name = "<bdi>([^<]*)</bdi>"
    return re.findall(f"is “{name}”.*?taken for “{name}”.*?{name}</small>", part, re.DOTALL)


def page_command(html):
    """Return the command that a page shows; None if it shows none."""
    found = re.search("<code>(setconv explain [^<]*)</code>", html)
    return found and unescape(found[1])
