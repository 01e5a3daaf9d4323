"""The performance suite.

    python -m benchmarks.speed [--quick] [--only PART ...] [--out FOLDER]
    python -m benchmarks.speed render [--out FOLDER]

The first measures and then writes performance/results.json, plots beside it and performance.md into
FOLDER, the second writes plots and page anew from the results. With --only the other parts stay as
they are. With --quick everything is small: that shows that it runs, not what it costs. Run it on an
idle machine; FOLDER is docs, or benchmarks/results/quick with --quick. All libraries have two
threads, or as many as OMP_NUM_THREADS says.
"""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    # Processes that are started read this file too, and hold only what they measure with.
    from benchmarks.speed import page, suite

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", nargs="?", choices=["run", "render"], default="run")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=suite.PARTS, metavar="PART")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    quick = ROOT / "benchmarks" / "results" / "quick"
    out = options.out or (quick if options.quick else ROOT / "docs")
    results = out / page.FOLDER / page.RESULTS
    failed = []
    if options.job == "run":
        failed = suite.run(options.only or suite.PARTS, results, quick=options.quick)
    page.write(suite.read(results), out)
    print(f"{out / page.PAGE}")
    if failed:
        raise SystemExit(f"These parts failed, see above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
