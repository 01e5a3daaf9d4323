"""What the tests of studies share; the folder is importable for worker processes too."""

import sys
from pathlib import Path

for folder in (".", "../report", "../soak"):  # pages are read by the same parser
    sys.path.insert(0, str(Path(__file__).parent / folder))
