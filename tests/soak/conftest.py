"""Modules that the soak tests share with those of texts."""

import sys
from pathlib import Path

# The processes of `harness.soak` are given the same path.
sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "text")]
