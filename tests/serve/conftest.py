"""Where the tests of the service find what other rooms share."""

import sys
from pathlib import Path

for room in ("explain", "report"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
