"""Build the wheel, look inside it, install it into an empty environment and use it there.

Run by ``make wheel-check``. Tests import the source tree; this check is what notices a file
that the wheel lacks or a dependency that only the development environment has.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "setconv"
SMOKE = ROOT / "tools" / "wheel_smoke.py"
PIP = ("-m", "pip", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command quietly; on failure show what it said and stop."""
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        line = " ".join(str(word) for word in command)
        sys.exit(f"{done.stdout}\nwheel check: this command failed (see above): {line}")


def build(folder: Path) -> Path:
    """Build the source archive, and from that archive the wheel."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Compare the wheel's files with the source tree's."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for path in PACKAGE.rglob("*") if path.is_file())
    wanted = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in files
        if path.suffix != ".pyc" and not path.name.startswith(".")
    }
    if "setconv/py.typed" not in found:
        sys.exit("wheel check: no py.typed in the wheel; is src/setconv/py.typed there?")
    if found != wanted:
        sys.exit(
            f"wheel check: missing in the wheel: {sorted(wanted - found)}; "
            f"in the wheel only: {sorted(found - wanted)}"
        )


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel and its dependencies alone; return that environment's Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, *PIP, "install", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    run(python, *PIP, "check", cwd=folder)
    return python


def main() -> None:
    """Check the wheel of this tree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        check_contents(wheel)
        python = install(wheel, folder / "venv")
        # -I: neither this folder nor PYTHONPATH is searched, so only the wheel can be imported.
        run(python, "-I", SMOKE, cwd=folder)
        print(f"wheel check: {wheel.name} is complete, installs alone, and fits")


if __name__ == "__main__":
    main()
