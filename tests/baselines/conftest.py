"""Shared by the tests of the baselines."""

import sys
from pathlib import Path

# With import-mode=importlib a test cannot import its neighbours by itself.
sys.path.insert(0, str(Path(__file__).parent))
