"""Ctrl-C in the middle of a fit: a checkpoint, a message, and the same model in the end."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from user_files import write_csv


@pytest.fixture
def large(tmp_path):
    """Enough rows and columns that a fit takes some seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = np.where(X[:, 0] + rng.normal(size=1500) > 2, "rare", "common")
    rows = [[*(f"{value:.4f}" for value in row), label] for row, label in zip(X, y, strict=True)]
    return write_csv(tmp_path / "large.csv", rows, [*(f"x{i}" for i in range(6)), "label"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit_resumes_to_the_same_model(large, tmp_path, setconv, number):
    command = [sys.executable, "-m", "setconv", "fit", str(large), "-o", str(tmp_path / "model")]
    checkpoint = tmp_path / "model.checkpoint" / "checkpoint.safetensors"
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(number)
    _, err = running.communicate(timeout=120)
    message = " ".join(err.decode().split())
    assert running.returncode == 130, message
    assert "--resume goes on" in message
    assert "fit(" not in message
    assert [one.name for one in checkpoint.parent.iterdir()] == [checkpoint.name]
    assert checkpoint.exists()
    assert not (tmp_path / "model").exists()
    if number == signal.SIGTERM:  # from here on there is no difference
        return
    other = ("fit", large, "--features", "x0,x1", "-o", tmp_path / "model", "--resume")
    said = setconv(*other, check=4).err
    assert "other data, parameters or --seed" in said
    assert "without --resume" in said
    setconv(*command[3:], "--resume")
    setconv("fit", large, "-o", tmp_path / "undisturbed")
    resumed, undisturbed = (tmp_path / n / "model.safetensors" for n in ("model", "undisturbed"))
    assert resumed.read_bytes() == undisturbed.read_bytes()
    assert not checkpoint.parent.exists()
