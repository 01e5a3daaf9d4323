"""Whatever the published document allows is answered by it, and what it forbids is refused."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from services import Process

pytest.importorskip("schemathesis")

TOKEN = "a-token"
# Rows are short, so that no body is larger than what is read; of what the schema cannot say, that a
# cost matrix or shares make sense, 409 tells.
OPTIONS = ("--max-rows", 8, "--max-text", 60, "--max-seconds", 30)


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("case", ["table", "texts", "many", "named"], indirect=True)
def test_the_service_does_what_its_document_says(case, cases, tmp_path):
    program = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    with Process(case.folder, *OPTIONS, environment={"SETCONV_TOKEN": TOKEN}) as service:
        command = [program, "run", f"http://127.0.0.1:{service.port}/openapi.json"]
        command += ["--checks", "all", "--continue-on-failure", "--no-color"]
        command += ["--max-examples", str(cases(400) // 10), "--generation-deterministic"]
        command += ["--header", f"Authorization: Bearer {TOKEN}", "--suppress-health-check", "all"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        code, lines = service.end()
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) generated", done.stdout)[1]) >= cases(500)
    assert code == 0
    assert not [one for one in lines if one["level"] == "error"]
