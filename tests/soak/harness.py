"""Thousands of hostile cases in a process of their own, each with a limit of time and of memory.

A room is a class: made once in a folder, it turns a number's generator into a case, a pair of words
that say what is done and of a function that does it. The function may return, after it has checked
its answers itself, or raise one of the room's `errors`, by default any of setconv's own. All else
is a failure: another error, a crash, more than a gigabyte, more than a minute.

One case again, alone, with its traceback::

    python tests/soak/harness.py tests/soak/test_checkpoints.py Checkpoints 137
"""

import importlib.util
import logging
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path

LIMIT, SLOW = 60.0, 5.0  # seconds
MEMORY = 1 << 30  # bytes that a case may need
_PREPARATION = 240.0  # seconds until the first case


def soak(room, numbers, folder):
    """Run the cases of these numbers; fail with all that went wrong, warn of what was slow."""
    __tracebackhide__ = True
    path, waiting, counts, failures = _path_of(room), list(numbers), Counter(), defaultdict(list)
    total = len(waiting)
    while waiting:
        workplace = Path(tempfile.mkdtemp(dir=folder))
        with _Worker(path, room.__name__, workplace, waiting) as worker:
            while waiting:
                number, what, *_ = worker.tell(_PREPARATION)
                assert number in waiting, f"{room.__name__} cannot be made: {number}"
                outcome, said, seconds = worker.tell(LIMIT)
                waiting.remove(number)
                counts[outcome] += 1
                if outcome not in OUTCOMES:
                    failures[outcome].append((number, f"{what}: {said}"))
                if seconds > SLOW:
                    words = f"{room.__name__} {number}: {seconds:.0f} s ({what})"
                    warnings.warn(words, stacklevel=2)
                if outcome in _ENDS:
                    break
        shutil.rmtree(workplace, ignore_errors=True)
    print(f"{room.__name__}: {dict(counts)}")  # noqa: T201
    assert not failures, _listed(failures, total, path, room.__name__)
    return counts


OUTCOMES = ("own error", "right answer")
_KILLED, _CRASHED = f"killed after {LIMIT:.0f} s", "the process died"
_ENDS = (_KILLED, _CRASHED)


def _path_of(room):
    return Path(sys.modules[room.__module__].__file__).resolve()


def _listed(failures, total, path, name):
    lines = [f"{sum(map(len, failures.values()))} of {total} cases failed"]
    again = f"python tests/soak/harness.py {os.path.relpath(path)} {name}"
    for kind, cases in sorted(failures.items(), key=lambda one: -len(one[1])):
        lines += ["", f"{len(cases)} x {kind}"]
        lines += [f"    {again} {number}   # {what}" for number, what in cases]
    return "\n".join(lines)


class _Worker:
    """A process that tells of each case twice: what it will be, and how it went."""

    def __init__(self, *work):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run_cases, args=(theirs, *work))
        self._process.start()
        theirs.close()

    def tell(self, limit):
        try:
            return self._pipe.recv() if self._pipe.poll(limit) else (_KILLED, "", limit)
        except EOFError:
            return _CRASHED, "", 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.join()


def _run_cases(pipe, path, name, folder, numbers):
    made = prepared(path, name, folder)
    for number in numbers:
        what, act = made.case(_rng(number))
        pipe.send((number, what))
        began = time.monotonic()
        pipe.send((*_outcome(act, made), time.monotonic() - began))


def prepared(path, name, folder):
    """Make a room in a folder, quietly."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable()
    os.environ["SETCONV_CACHE"] = str(folder / "cache")
    # A runaway case is stopped before the machine suffers.
    resource.setrlimit(resource.RLIMIT_DATA, (8 * MEMORY, resource.RLIM_INFINITY))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)(folder)


def _rng(number):
    import numpy as np

    return np.random.default_rng([8128, number])


def _outcome(act, room):
    from setconv.errors import SetConvError

    own = getattr(room, "errors", SetConvError)
    before, said = _memory("VmRSS", reset=True), ""
    try:
        act()
        outcome = "right answer"
    except own:
        outcome = "own error"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [one for one in frames if "src/setconv/" in one.filename] or frames
        outcome = f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"
        said = str(error)[:150]
    if _memory("VmHWM") - before > MEMORY:
        outcome = "over 1 GB of memory"
    return outcome, said


def _memory(line, reset=False):
    """Return bytes that this process holds, or held at most; 0 where the system cannot say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    found = next(one for one in status.read_text().splitlines() if one.startswith(line))
    return int(found.split()[1]) << 10


def pick(rng, choices):
    """Return one of them, of any type."""
    return choices[int(rng.integers(len(choices)))]


def damaged(content, rng):
    """Return bytes as an accident leaves them, with words for it."""
    start, end = sorted(rng.integers(0, len(content) + 1, 2).tolist())
    noise = rng.bytes(int(rng.integers(1, 64)))
    flipped = bytearray(content)
    for place in rng.integers(0, max(len(content), 1), rng.integers(1, 5)).tolist():
        flipped[place : place + 1] = [content[place] ^ (1 << int(rng.integers(8)))]
    return pick(
        rng,
        [
            ("bits flipped", bytes(flipped)),
            (f"cut at {start}", content[:start]),
            (f"{start} to {end} gone", content[:start] + content[end:]),
            (f"{start} to {end} doubled", content[:end] + content[start:]),
            (f"{start} to {end} first", content[start:end] + content[:start] + content[end:]),
            (f"noise at {start}", content[:start] + noise + content[start + len(noise) :]),
            (f"noise put in at {start}", content[:start] + noise + content[start:]),
            (f"zeros from {start} to {end}", content[:start] + bytes(end - start) + content[end:]),
            ("noise appended", content + noise),
        ],
    )


if __name__ == "__main__":
    sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "text")]
    with tempfile.TemporaryDirectory() as place:
        case = prepared(Path(sys.argv[1]).resolve(), sys.argv[2], Path(place))
        said, do = case.case(_rng(int(sys.argv[3])))
        print(said, flush=True)  # noqa: T201
        do()
