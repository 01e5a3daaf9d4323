"""Fit, predict and save with an installed setconv; check_wheel.py runs it outside the tree."""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

import setconv


def main() -> None:
    """Fail with an error if the installed package does not work."""
    where = Path(setconv.__file__).resolve().parent
    assert where.is_relative_to(Path(sys.prefix).resolve()), f"imported from {where}"
    assert (where / "py.typed").is_file()
    assert setconv.__version__ == version("setconv")

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [90, 10])
    X = rng.normal(size=(100, 4)) + 4.0 * y[:, None]
    model = setconv.SetConvClassifier(random_state=0).fit(X, y)
    predicted = model.predict(X)
    assert (predicted == y).mean() > 0.9

    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = setconv.load(Path(folder) / "model")
        np.testing.assert_array_equal(again.predict(X), predicted)


if __name__ == "__main__":
    main()
