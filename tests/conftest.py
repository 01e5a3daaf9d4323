"""Data that the tests share, made here: no test reads a file from outside the project."""

import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

# No test touches the cache of whoever runs it.
os.environ["SETCONV_CACHE"] = tempfile.mkdtemp(prefix="setconv-tests-")
# Read by scikit-learn at its import: without it, one of its checks is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# With import-mode=importlib a test cannot import its neighbours by itself.
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from small_models import make_rows, small

# The same examples in every run: no test depends on chance, those of `make fuzz` aside.
settings.register_profile(
    "derandomised",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz", settings.get_profile("derandomised"), max_examples=600, derandomize=False
)
settings.load_profile("derandomised")

# Two test processes on two cores: more threads would only fight.
torch.set_num_threads(1)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="all kills and cases, not a tenth of them")


@pytest.fixture(scope="session")
def cases(pytestconfig):
    """A number of kills or cases: all of them with --full, else a tenth."""
    return lambda full: full if pytestconfig.getoption("full") else full // 10


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter, config):
    """Count what was left out, by reason, below everything else."""
    yield
    counts = Counter(map(reason, terminalreporter.stats.get("skipped", [])))
    if others := config.stash.get(DESELECTED, 0):
        counts["deselected by -m or -k"] = others
    for why, count in sorted(counts.items()):
        terminalreporter.write_line(f"left out: {count} test{'s' * (count > 1)}, {why}")


# With xdist each worker deselects the same tests, and tells the process that reports.
DESELECTED = pytest.StashKey[int]()


def pytest_deselected(items):
    if items:
        config = items[0].config
        config.stash[DESELECTED] = config.stash.get(DESELECTED, 0) + len(items)
        if hasattr(config, "workeroutput"):
            config.workeroutput["deselected"] = config.stash[DESELECTED]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[DESELECTED] = getattr(node, "workeroutput", {}).get("deselected", 0)


def reason(report):
    """Why a test was skipped, in a few words."""
    why = report.longrepr[2].removeprefix("Skipped: ")
    return re.sub(r"could not import '([^'.]+).*", r"\1 is not installed", why)


@pytest.fixture(scope="session")
def binary():
    return make_rows()


@pytest.fixture(scope="session")
def multiclass():
    return make_rows(n=400, classes=4, minority=0.3, seed=1)


@pytest.fixture(scope="session")
def fitted(binary):
    return small(encoder=(16,), out_features=8, max_steps=30, n_episodes=4).fit(*binary)


@pytest.fixture(scope="session")
def fitted_multiclass(multiclass):
    return small(encoder=(16,), out_features=8, max_steps=60, n_episodes=4).fit(*multiclass)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
