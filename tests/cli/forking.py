"""Run ``setconv`` in processes that are forked from this one, which has imported torch already.

Orders come as lines of JSON on one file, exit codes go back on another; both are arguments.
"""

import json
import os
import runpy
import sys
import traceback

import setconv.cli.app
import setconv.pipelines
import setconv.report
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier

NEEDED = (setconv, SetConvTableClassifier, SetConvTextClassifier)


def run(order):
    """Become the command; return its exit code."""
    modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    for number, (path, mode) in enumerate(zip(order["files"], modes, strict=True)):
        os.dup2(os.open(path, mode), number)
    os.chdir(order["cwd"])
    sys.argv = ["setconv", *order["arguments"]]
    try:
        runpy.run_module("setconv", run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main():
    """Serve until the orders end."""
    orders, answers = (os.fdopen(int(n), mode) for n, mode in zip(sys.argv[1:], "rw", strict=True))
    for line in iter(orders.readline, ""):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = run(json.loads(line))
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
