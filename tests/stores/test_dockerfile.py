"""The image can be built from what its context has, and its commands do what they are there for.

Nothing is built here: the commands of the Dockerfile are read, and run where they can be.
"""

import fnmatch
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def instructions():
    """The instructions of the Dockerfile, as their names and the rest of their lines."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", "").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line]


def of(name):
    return [rest for one, rest in instructions() if one == name]


def sent():
    """The files of the project's top folder that .dockerignore lets through."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    found = set()
    for line in lines:
        hits = {one.name for one in ROOT.iterdir() if fnmatch.fnmatch(one.name, line.lstrip("!"))}
        found = found | hits if line.startswith("!") else found - hits
    return found


def test_all_that_is_copied_is_sent_and_all_that_is_sent_is_copied():
    copied = {name for rest in of("COPY") if "--from" not in rest for name in rest.split()[:-1]}
    assert copied == sent()
    # What the build of the package reads.
    assert {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", "src"} <= copied


def test_the_extras_that_are_installed_exist():
    (extras,) = re.findall(r"\"\.\[(.*)\]\"", "\n".join(of("RUN")))
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()


def test_the_base_image_is_of_a_python_that_is_supported():
    base = {rest.split()[0] for rest in of("FROM")}
    (version,) = {re.fullmatch(r"python:(3\.\d+)-slim", one)[1] for one in base}
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_it_runs_as_a_user_without_rights():
    names = [name for name, _ in instructions()]
    assert names[::-1].index("USER") < names[::-1].index("FROM")  # of the image, not of its build
    (user,) = of("USER")
    assert int(user) > 0
    assert any(f"useradd --create-home --uid {user} " in rest for rest in of("RUN"))


class Answers(BaseHTTPRequestHandler):
    """Says how it is at /health/ready alone."""

    def do_GET(self):
        ready = self.path == "/health/ready"
        self.send_response(self.server.status if ready else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


def health(port):
    (rest,) = of("HEALTHCHECK")
    command = json.loads(rest[rest.index("CMD") + 3 :])
    assert command[0] == "python"
    (exposed,) = of("EXPOSE")
    program = command[2].replace(f", {exposed},", f", {port},")
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=30
    ).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_health_check_tells_whether_the_service_is_ready(status, code):
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.status = status
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert health(server.server_port) == code
        thread.join()
    assert health(server.server_port) == 1  # nobody answers


def test_the_command_of_the_image_serves_a_model_until_it_is_told_to_end(tmp_path, fitted):
    fitted.save(tmp_path / "model")
    entry, given = (json.loads(*of(name)) for name in ("ENTRYPOINT", "CMD"))
    given[given.index("/model")] = str(tmp_path / "model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    source = str(ROOT / "src")
    service = subprocess.Popen(
        [sys.executable, "-m", *entry, *given, "--port", str(port)],
        env=os.environ | {"PYTHONPATH": source, "SETCONV_TOKEN": "of-this-test"},
    )
    try:
        while health(port):
            assert service.poll() is None
    finally:
        service.terminate()
    assert service.wait(60) == 0
