"""What the commands leave, as data: tables of figures, CSV files, pages."""

import csv
import math
import re
from html import unescape

HEAD = ["Spec", "Sens", "Precision", "F1", "G-mean", "AUC", "AP"]


def read_table(out):
    """Return the figures of each class as a terminal shows them; nan for n/a."""
    lines = [line.split() for line in out.splitlines()]
    start = next(place for place, line in enumerate(lines) if line[:1] == ["class"])
    assert lines[start][-len(HEAD) :] == HEAD
    found = {}
    for line in lines[start + 2 :]:
        if not line:
            return found
        found[line[0]] = [math.nan if one == "n/a" else float(one) for one in line[-len(HEAD) :]]
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
