"""Where the cache is if nobody says where."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def default_folder() -> Path:
    """Return ``$SETCONV_CACHE``, else the place for caches of the system with ``setconv`` in it."""
    if chosen := os.environ.get("SETCONV_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local or Path.home() / "AppData" / "Local") / "setconv" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "setconv"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setconv"
