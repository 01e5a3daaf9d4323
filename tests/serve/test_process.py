"""``setconv serve`` as users run it: signals, workers, slow clients, and starts that fail."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

import pytest
from services import Process, make_table, plain, post
from small_models import make_rows, small

from setconv import load

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX"),
]


class Crowd:
    """Clients that ask without a pause, each over a connection that stays open."""

    def __init__(self, service, rows, clients=8):
        self.answers, self.lost, self._end = [], [], threading.Event()
        self._bodies = [json.dumps({"rows": [row]}).encode() for row in rows]
        targets = [threading.Thread(target=self._ask, args=(service.port,)) for _ in range(clients)]
        self._threads = targets
        for one in targets:
            one.start()

    def _ask(self, port):
        from http.client import HTTPConnection

        head, place = {"Content-Type": "application/json"}, 0
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        while not self._end.is_set():
            place = (place + 1) % len(self._bodies)
            try:
                if connection.sock is None:
                    connection.connect()
            except OSError:  # nobody accepts any more
                return
            try:
                connection.request("POST", "/predict", self._bodies[place], head)
                answer = connection.getresponse()
                said = json.loads(answer.read())
                if answer.getheader("connection") == "close":
                    connection.close()
            except Exception as error:
                self.lost.append(repr(error))
                return
            self.answers.append((place, answer.status, said))

    def wait_for(self, count):
        """Wait for so many answers more."""
        until = len(self.answers) + count
        while len(self.answers) < until:
            assert not self.lost
            self._end.wait(0.01)

    def end(self):
        self._end.set()
        for one in self._threads:
            one.join()
        return self.answers


def assert_right(answers, case):
    expected = case.expected()
    for place, status, said in answers:
        assert status == 200, said
        assert plain(said["predictions"]) == [expected[place]]


def test_it_serves_until_it_is_told_to_end_and_logs_lines_of_json(table):
    with Process(table.folder) as service:
        status, _, said = post(service.port, "/predict", {"rows": table.rows})
        assert (status, plain(said["predictions"])) == (200, table.expected())
        code, lines = service.end()
    assert code == 0
    (line,) = [one for one in lines if one.get("path") == "/predict"]
    assert {"time", "level", "client", "method", "status", "ms"} <= set(line)
    assert "FR" not in json.dumps(lines)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_accepted_request_is_lost_when_it_ends(vectors, workers):
    with Process(vectors.folder, "--workers", workers) as service:
        crowd = Crowd(service, vectors.rows)
        crowd.wait_for(200)
        code, _ = service.end()
    assert_right(crowd.end(), vectors)
    assert (code, crowd.lost) == (0, [])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_new_model_is_served_without_dropping_a_request(vectors, tmp_path, workers):
    folder, X = tmp_path / "model", make_rows()
    load(vectors.folder).save(folder)
    new = small(objective="f1", max_steps=2).fit(*X)
    with Process(folder, "--workers", workers) as service:
        crowd = Crowd(service, vectors.rows)
        crowd.wait_for(50)
        old = {said["model"]["version"] for _, _, said in crowd.answers}
        new.save(folder)
        service.process.send_signal(signal.SIGHUP)
        while {said["model"]["version"] for _, _, said in crowd.answers[-40:]} & old:
            crowd.wait_for(40)
        broken = folder / "model.safetensors"
        content = broken.read_bytes()
        broken.write_bytes(content[:-1])
        service.process.send_signal(signal.SIGHUP)
        crowd.wait_for(100)
        answers = crowd.end()
        _, lines = service.end()
    assert crowd.lost == []
    assert {status for _, status, _ in answers} == {200}
    assert len({said["model"]["version"] for _, _, said in answers}) == 2
    assert sum("refused" in one.get("said", "") for one in lines) >= 1


@pytest.mark.soak
def test_reloads_under_load_drop_no_request(vectors, cases, tmp_path):
    folder = tmp_path / "model"
    load(vectors.folder).save(folder)
    with Process(folder) as service:
        crowd = Crowd(service, vectors.rows)
        for _ in range(cases(50)):
            load(vectors.folder).save(folder)
            service.process.send_signal(signal.SIGHUP)
            crowd.wait_for(40)
        answers = crowd.end()
        _, lines = service.end()
    assert crowd.lost == []
    assert_right(answers, vectors)
    assert sum("read again" in one.get("said", "") for one in lines) >= cases(50) - 1


def test_killed_under_load_it_starts_again_at_the_same_port(vectors):
    with Process(vectors.folder) as service:
        crowd = Crowd(service, vectors.rows)
        crowd.wait_for(100)
        service.process.kill()
        crowd.end()
        assert {status for _, status, _ in crowd.answers} == {200}
    with Process(vectors.folder, port=service.port) as again:
        said = post(again.port, "/predict", {"rows": vectors.rows})[2]
        assert plain(said["predictions"]) == vectors.expected()


def children(pid):
    return [
        int(line.split()[0])
        for line in subprocess.check_output(
            ["ps", "-ww", "-eo", "pid,ppid,args"], text=True
        ).splitlines()[1:]
        if int(line.split()[1]) == pid and "spawn_main" in line
    ]


@pytest.mark.skipif(shutil.which("ps") is None, reason="ps is not there")
def test_a_dead_worker_is_started_anew_and_none_outlives_the_first_process(vectors):
    with Process(vectors.folder, "--workers", 2) as service:
        before = children(service.process.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        while set(children(service.process.pid)) <= set(before):
            assert post(service.port, "/predict", {"rows": vectors.rows[:1]})[0] == 200
        after = children(service.process.pid)
        figures = post(service.port, "/metrics", None)[2].decode()
        assert 'setconv_requests_total{endpoint="/predict",status="200"}' in figures
        service.process.kill()
        service.process.wait()
        until = monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in after) and monotonic() < until:
            pass
        with pytest.raises(OSError):  # noqa: PT011 -- nobody listens
            socket.create_connection(("127.0.0.1", service.port))


@contextlib.contextmanager
def connected(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        yield connection


HEAD = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


def test_clients_that_are_too_slow_are_told_to_go(vectors):
    with Process(vectors.folder, "--max-seconds", 1) as service:
        for sent in (b"", b"POST /pre", HEAD, HEAD + b'content-length: 9\r\n\r\n{"ro'):
            with connected(service) as slow:
                slow.sendall(sent)
                assert b"408 Request Timeout" in slow.recv(10_000)
                assert slow.recv(1) == b""
        # A second request on the same connection is waited for no longer.
        with connected(service) as slow:
            slow.sendall(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
            said = slow.recv(10_000)
            while b"}" not in said:
                said += slow.recv(10_000)
            slow.sendall(b"GET /he")
            assert b"408 Request Timeout" in slow.recv(10_000)
        assert post(service.port, "/health/live", None)[0] == 200


def test_connections_that_are_half_closed_or_left_hold_nothing(vectors):
    with Process(vectors.folder, "--max-connections", 4) as service:
        for _ in range(12):
            with connected(service) as half:
                half.sendall(HEAD)
                half.shutdown(socket.SHUT_WR)
                assert half.recv(10_000) == b""
        assert post(service.port, "/predict", {"rows": vectors.rows[:1]})[0] == 200


def test_more_connections_than_may_be_are_told_so(vectors):
    with (
        Process(vectors.folder, "--max-connections", 2) as service,
        contextlib.ExitStack() as open_,
    ):
        held = [open_.enter_context(connected(service)) for _ in range(2)]
        for one in held:
            one.sendall(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in one.recv(10_000)
        status, headers, said = post(service.port, "/predict", {"rows": vectors.rows[:1]})
        assert status == 503
        assert headers["retry-after"] == "1"
        assert "Too many connections" in said["error"]
    assert service.process.poll() is not None


def test_what_is_no_http_is_refused_and_large_bodies_are_heard_to_their_end(vectors):
    with Process(vectors.folder) as service:
        with connected(service) as other:
            other.sendall(b"\x16\x03\x01 no http\r\n\r\n")
            assert b"400 Bad Request" in other.recv(10_000)
        assert post(service.port, "/predict", b"x" * 50_000_000)[0] == 413
        code, lines = service.end()
    assert code == 0
    assert "Traceback" not in json.dumps(lines)


def test_a_token_of_the_environment_or_a_file_is_asked_for(vectors, tmp_path):
    file = tmp_path / "token"
    file.write_text("secret\n")
    for options, environment in (((), {"SETCONV_TOKEN": "secret"}), (("--token-file", file), {})):
        options = (*options, "--host", "0.0.0.0")
        with Process(vectors.folder, *options, environment=environment) as service:
            body = {"rows": vectors.rows[:1]}
            assert post(service.port, "/predict", body)[0] == 401
            right = {"Authorization": "Bearer secret"}
            assert post(service.port, "/predict", body, right)[0] == 200


def fails(*options, environment=()):
    done = subprocess.run(
        [sys.executable, "-m", "setconv", "serve", *map(str, options)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **dict(environment)},
    )
    return done.returncode, " ".join(done.stderr.split())


def test_a_start_that_fails_says_why_in_a_sentence(vectors, tmp_path):
    code, said = fails(tmp_path / "nowhere")
    assert (code, "is not a folder" in said) == (4, True)
    code, said = fails(tmp_path, "--workers", 2)
    assert (code, "is not a setconv model" in said) == (4, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = fails(vectors.folder, "--port", port)
    assert (code, f"port {port}" in said) == (2, True)
    assert "choose another --port" in said
    code, said = fails(vectors.folder, "--host", "0.0.0.0")
    assert (code, "SETCONV_TOKEN" in said) == (2, True)
    code, said = fails(vectors.folder, "--open", "--host", "no such host")
    assert (code, "cannot listen at no such host" in said) == (2, True)
    code, said = fails(vectors.folder, environment={"SETCONV_TOKEN": ""})
    assert (code, "The token is empty" in said) == (2, True)
    code, said = fails(vectors.folder, "--token-file", tmp_path / "none")
    assert code == 4
    (tmp_path / "fastapi").mkdir()
    (tmp_path / "fastapi" / "__init__.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code, said = fails(vectors.folder, environment={"PYTHONPATH": path})
    assert (code, "pip install 'setconv[serve]'" in said) == (5, True)


def test_the_nearest_training_rows_are_told(table, tmp_path):
    import pyarrow.csv as csv

    rows, labels = make_table()
    without = rows.drop_columns(["place"])
    csv.write_csv(without.append_column("label", [labels]), tmp_path / "train.csv")
    from setconv import SetConvTableClassifier

    model = SetConvTableClassifier(classifier=small(objective="balanced", max_steps=2))
    model.fit(csv.read_csv(tmp_path / "train.csv").drop_columns(["label"]), labels)
    model.save(tmp_path / "model")
    row = {k: one for k, one in table.rows[3].items() if k != "place"}
    with Process(tmp_path / "model", "--train", tmp_path / "train.csv") as service:
        asked = {"rows": [row], "top": 4}
        (found,) = post(service.port, "/explain", asked)[2]["explanations"]
        assert post(service.port, "/model", None)[2]["has_training_rows"]
    nearest = found["nearest"]
    assert len(nearest) == 4
    assert nearest[0]["similarity"] == pytest.approx(1, abs=1e-6)
    assert nearest[0]["row"] == 4
    assert nearest[0]["values"]["country"] == row["country"]
    assert nearest[0]["label"] == labels[3]
