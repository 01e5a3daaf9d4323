"""The demo's texts."""

import sys
from types import SimpleNamespace

from setconv.cli.demo import load_reports


def report(description, severity, **fields):
    return {"description": description, "severity": severity, "tags": ["cve", "nvd"], **fields}


def test_the_reports_of_the_database_that_stand_each_once(monkeypatch):
    reports = [
        report("Runs any command.", "Critical"),
        report("Runs any\ncommand.", "Critical"),
        report("Closes the viewer.", "Low"),
        report("Was no flaw after all.", "Critical", status="retracted"),
        report("A news item.", "Critical", tags=["aiid"]),
    ]
    package = SimpleNamespace(load_incidents=lambda: reports)
    monkeypatch.setitem(sys.modules, "genai_incidents", package)
    texts, labels = load_reports()
    assert texts == ["Runs any command.", "Closes the viewer."]
    assert labels.tolist() == ["critical", "below critical"]
