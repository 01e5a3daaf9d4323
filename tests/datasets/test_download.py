"""Downloads from a local server: resumed, checked, and never half there."""

import errno
import hashlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setconv.datasets.downloads import download
from setconv.datasets.sources import AMAZON_CATEGORIES, SOURCES, fetch_amazon, how_to_get
from setconv.errors import DataError, ParameterError

CONTENT = bytes(range(256)) * 1024
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one file, as well or as badly as it is told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.ranges = True
        self.tag = '"one"'
        self.tell_length = True
        self.cuts = []  # bytes after which each of the next connections ends
        self.refusals = []  # status codes of the next answers
        self.retry_after = None
        self.delay = 0.0
        self.asked = []  # the Range header of each request

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/data.bin"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append(self.headers["Range"])
        if server.refusals:
            self.refuse(server.refusals.pop(0))
            return
        start = self.wanted_start()
        if start is not None and start >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200 if start is None else 206)
        rest = server.content[start or 0 :]
        if start is not None:
            last = len(server.content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(server.content)}")
        if server.tell_length:
            self.send_header("Content-Length", str(len(rest)))
        if server.tag:
            self.send_header("ETag", server.tag)
        self.end_headers()
        self.send_body(rest[: server.cuts.pop(0)] if server.cuts else rest)

    def wanted_start(self):
        found = re.match(r"bytes=(\d+)-$", self.headers["Range"] or "")
        changed = self.headers["If-Range"] not in (None, self.server.tag)
        return int(found[1]) if found and self.server.ranges and not changed else None

    def refuse(self, status):
        self.send_response(status)
        if self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_body(self, body):
        step = 8192 if self.server.delay else len(body) or 1
        try:
            for at in range(0, len(body), step):
                self.wfile.write(body[at : at + step])
                if self.server.delay:
                    time.sleep(self.server.delay)
        except ConnectionError:
            pass


@pytest.fixture
def server():
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def waits(monkeypatch):
    """The seconds that were waited, without waiting them."""
    waited = []
    monkeypatch.setattr("setconv.datasets.downloads.time.sleep", waited.append)
    return waited


def start_part(target, content, note=None):
    """Leave what a run that was killed would leave."""
    target.with_name(f"{target.name}.part").write_bytes(content)
    if note is not None:
        target.with_name(f"{target.name}.part.json").write_text(note)


def names(folder):
    return sorted(one.name for one in folder.iterdir())


def test_a_file_is_there_whole_and_nothing_else_is(server, tmp_path):
    target = tmp_path / "new" / "data.bin"
    assert download(server.url, target, SHA256) == target
    assert target.read_bytes() == CONTENT
    assert names(target.parent) == ["data.bin"]
    assert server.asked == [None]


def test_a_checksum_in_capitals_is_the_same(server, tmp_path):
    download(server.url, tmp_path / "data.bin", SHA256.upper())


def test_a_file_that_is_there_is_not_downloaded_again(server, tmp_path):
    target = download(server.url, tmp_path / "data.bin", SHA256)
    download(server.url, target, SHA256)
    download(server.url, target, None)
    assert len(server.asked) == 1


def test_a_file_with_another_checksum_is_replaced(server, tmp_path):
    target = tmp_path / "data.bin"
    target.write_bytes(b"old")
    download(server.url, target, SHA256)
    assert target.read_bytes() == CONTENT


def test_an_empty_file_can_be_downloaded(server, tmp_path):
    server.content = b""
    assert download(server.url, tmp_path / "data.bin", None).read_bytes() == b""


def test_a_checksum_that_nobody_told_is_logged(server, tmp_path, caplog):
    with caplog.at_level("INFO", logger="setconv"):
        download(server.url, tmp_path / "data.bin", None)
    assert SHA256 in caplog.text


def test_a_bar_is_shown_only_if_wanted(server, tmp_path, capfd):
    download(server.url, tmp_path / "quiet", SHA256, progress=False)
    assert capfd.readouterr().err == ""
    download(server.url, tmp_path / "shown", SHA256, progress=True)
    assert "256k/256k" in capfd.readouterr().err


# --------------------------------------------------------------------------------- interruptions


def test_a_cut_connection_is_resumed_where_it_broke(server, tmp_path, waits):
    server.cuts = [1000, 2000]
    assert download(server.url, tmp_path / "data.bin", SHA256).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-", "bytes=3000-"]
    assert waits == [1, 1]


@pytest.mark.usefixtures("waits")
def test_a_cut_connection_without_ranges_starts_again(server, tmp_path):
    server.ranges, server.cuts = False, [1000]
    assert download(server.url, tmp_path / "data.bin", SHA256).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=1000-"]


@pytest.mark.usefixtures("waits")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), max_size=4),
    ranges=st.booleans(),
    tag=st.sampled_from(['"one"', 'W/"weak"', None]),
    checked=st.booleans(),
)
def test_wherever_it_is_cut_the_file_is_the_same(server, tmp_path, cuts, ranges, tag, checked):
    server.cuts, server.ranges, server.tag = list(cuts), ranges, tag
    target = tmp_path / "data.bin"
    target.unlink(missing_ok=True)
    download(server.url, target, SHA256 if checked else None, retries=5)
    assert target.read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]


def test_after_too_many_failures_the_part_is_kept_and_the_next_call_goes_on(
    server, tmp_path, waits
):
    target = tmp_path / "data.bin"
    server.cuts = [5000, 0, 0, 0]
    with pytest.raises(DataError, match=r"after 3 tries in a row.*5,000 bytes are kept"):
        download(server.url, target, SHA256, retries=2)
    assert waits == [1, 1, 2]
    assert names(tmp_path) == ["data.bin.part", "data.bin.part.json"]
    download(server.url, target, SHA256)
    assert server.asked[-1] == "bytes=5000-"
    assert target.read_bytes() == CONTENT


def test_a_busy_server_is_asked_again_when_it_says(server, tmp_path, waits):
    server.refusals, server.retry_after = [503, 429], "7"
    download(server.url, tmp_path / "data.bin", SHA256)
    assert waits == [7, 7]


@pytest.mark.usefixtures("waits")
def test_a_silent_server_is_given_up(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/data.bin"
        with pytest.raises(DataError, match=r"timed out.*after 2 tries"):
            download(url, tmp_path / "data.bin", SHA256, retries=1, timeout=0.05)
    assert names(tmp_path) == []


@pytest.mark.usefixtures("waits")
def test_no_server_at_all_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/data.bin"
    with pytest.raises(DataError, match=r"no connection.*Check the address and the network"):
        download(url, tmp_path / "data.bin", SHA256, retries=0)


@pytest.mark.parametrize(
    ("status", "hint"), [(404, "moved"), (403, "ask its owner"), (400, "browser")]
)
def test_a_refusal_is_not_repeated_and_leaves_nothing(server, tmp_path, waits, status, hint):
    server.refusals = [status]
    with pytest.raises(DataError, match=rf"data.bin cannot be downloaded.*{status}.*{hint}"):
        download(server.url, tmp_path / "data.bin", SHA256)
    assert (names(tmp_path), waits) == ([], [])


# ---------------------------------------------------------------------------------- resumed parts


def test_a_part_of_the_same_version_is_resumed_without_a_checksum(server, tmp_path):
    target = tmp_path / "data.bin"
    note = f'{{"url": "{server.url}", "validator": "\\"one\\""}}'
    start_part(target, CONTENT[:777], note)
    assert download(server.url, target, None).read_bytes() == CONTENT
    assert server.asked == ["bytes=777-"]


def test_a_part_of_an_older_version_is_loaded_anew(server, tmp_path):
    target = tmp_path / "data.bin"
    note = f'{{"url": "{server.url}", "validator": "\\"older\\""}}'
    start_part(target, b"x" * 777, note)
    assert download(server.url, target, None).read_bytes() == CONTENT


@pytest.mark.parametrize("note", [None, "no JSON", "[]", '{"url": "http://elsewhere/"}'])
def test_a_part_of_unknown_origin_is_resumed_only_where_a_checksum_will_tell(
    server, tmp_path, note
):
    target = tmp_path / "data.bin"
    start_part(target, CONTENT[:777], note)
    assert download(server.url, target, None).read_bytes() == CONTENT
    assert server.asked == [None]
    target.unlink()
    start_part(target, CONTENT[:777], note)
    assert download(server.url, target, SHA256).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=777-"]


def test_a_wrong_part_is_found_by_the_checksum_and_loaded_anew(server, tmp_path, caplog):
    target = tmp_path / "data.bin"
    start_part(target, b"x" * 777)
    assert download(server.url, target, SHA256).read_bytes() == CONTENT
    assert server.asked == ["bytes=777-", None]
    assert "loaded anew" in caplog.text


def test_a_part_that_is_whole_is_only_moved(server, tmp_path):
    target = tmp_path / "data.bin"
    start_part(target, CONTENT)
    assert download(server.url, target, SHA256).read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-"]


def test_a_part_that_is_too_long_is_loaded_anew(server, tmp_path, caplog):
    target = tmp_path / "data.bin"
    start_part(target, CONTENT + b"more")
    assert download(server.url, target, SHA256).read_bytes() == CONTENT
    assert "loaded anew" in caplog.text


def test_a_killed_download_leaves_no_target_and_goes_on_from_what_came(server, tmp_path):
    target = tmp_path / "data.bin"
    part = tmp_path / "data.bin.part"
    server.delay = 0.02
    program = (
        "from setconv.datasets.downloads import download;"
        f"download({server.url!r}, {str(target)!r}, {SHA256!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= 65536) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not target.exists()
    came = part.stat().st_size
    assert CONTENT.startswith(part.read_bytes())
    server.delay = 0.0
    download(server.url, target, SHA256)
    assert server.asked[-1] == f"bytes={came}-"
    assert target.read_bytes() == CONTENT
    assert names(tmp_path) == ["data.bin"]


# --------------------------------------------------------------------------------- what is wrong


def test_a_wrong_checksum_is_an_error_and_the_file_is_kept_aside(server, tmp_path):
    target = tmp_path / "data.bin"
    target.write_bytes(b"old")
    with pytest.raises(DataError, match=rf"{SHA256}, not 0{{64}}.*kept aside as .*\.mismatch"):
        download(server.url, target, "0" * 64)
    assert names(tmp_path) == ["data.bin", "data.bin.mismatch"]
    assert target.read_bytes() == b"old"
    assert (tmp_path / "data.bin.mismatch").read_bytes() == CONTENT


def test_a_full_disk_is_said_and_the_part_is_kept(server, tmp_path, monkeypatch):
    real = Path.open

    def full(path, mode="r", *args, **kwargs):
        if path.name.endswith(".part") and mode == "ab":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DataError, match=r"No space left on device.*call again"):
        download(server.url, tmp_path / "data.bin", SHA256)
    assert not (tmp_path / "data.bin").exists()


def test_a_folder_is_no_target(server, tmp_path):
    with pytest.raises(DataError, match="is a folder"):
        download(server.url, tmp_path, SHA256)
    assert server.asked == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"url": "file:///etc/hosts"}, "starts with http"),
        ({"url": "http://"}, "starts with http"),
        ({"url": "http://host/two words"}, "starts with http"),
        ({"sha256": "abc"}, "64 hexadecimal digits"),
        ({"progress": "maybe"}, "progress='maybe'"),
        ({"retries": -1}, "retries=-1"),
        ({"timeout": 0}, "timeout=0"),
    ],
)
def test_a_parameter_that_cannot_work_is_named(tmp_path, changed, message):
    given = {"url": "http://127.0.0.1/x", "target": tmp_path / "x", "sha256": SHA256} | changed
    with pytest.raises(ParameterError, match=message):
        download(**given)


# --------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_says_where_it_is_how_to_get_it_and_what_is_allowed(name):
    source = SOURCES[name]
    assert source.page in how_to_get(name)
    assert source.how in how_to_get(name)
    assert source.licence in how_to_get(name)


def test_an_unknown_benchmark_is_told_its_neighbour():
    with pytest.raises(ParameterError, match="Did you mean 'semeval2017'"):
        how_to_get("semeval2016")


def test_a_category_of_amazon_is_downloaded_under_its_published_name(server, tmp_path, monkeypatch):
    local = server.url.replace("data.bin", "reviews_{category}_5.json.gz")
    monkeypatch.setitem(SOURCES, "amazon", SOURCES["amazon"].__class__("", "", "", "", local))
    found = fetch_amazon("Books", tmp_path, sha256=SHA256, progress=False)
    assert found == tmp_path / "reviews_Books_5.json.gz"


def test_an_unknown_category_is_told_its_neighbour(tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'Books'"):
        fetch_amazon("Book", tmp_path)
    assert len(AMAZON_CATEGORIES) == 24
