"""What the tests of studies share; the folder is importable for worker processes too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
