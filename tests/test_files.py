"""Files that are there whole or not at all."""

import os
import signal
import stat
from pathlib import Path

import pytest

from setconv.io.files import claim, replaced, write_atomically


@pytest.fixture
def umask():
    """Set the umask for one test."""
    before = os.umask(0o022)
    os.umask(before)
    yield os.umask
    os.umask(before)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def failing(number):
    """A stand-in for Path.replace that fails at its call of this number, counted from 1."""
    real, calls = Path.replace, []

    def replace(self, target):
        calls.append((self, target))
        if len(calls) == number:
            raise OSError(28, "No space left on device")
        return real(self, target)

    return replace


# ------------------------------------------------------------------------------------ one file


def test_a_file_is_written(tmp_path):
    write_atomically(tmp_path / "a.bin", b"new")
    assert contents(tmp_path) == {"a.bin": b"new"}


def test_a_file_that_was_there_is_replaced(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"the old and longer one")
    write_atomically(tmp_path / "a.bin", b"new")
    assert contents(tmp_path) == {"a.bin": b"new"}


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, error):
    (tmp_path / "a.bin").write_bytes(b"old")

    def fail(_):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        write_atomically(tmp_path / "a.bin", b"new")
    assert contents(tmp_path) == {"a.bin": b"old"}


def test_a_move_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    (tmp_path / "a.bin").write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", failing(1))
    with pytest.raises(OSError, match="No space"):
        write_atomically(tmp_path / "a.bin", b"new")
    assert contents(tmp_path) == {"a.bin": b"old"}


def test_the_content_is_on_the_disk_before_the_file_is_moved(tmp_path, monkeypatch):
    events = []
    sync, move = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("sync"), sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda *both: (events.append("move"), move(*both)))
    write_atomically(tmp_path / "a.bin", b"new")
    assert events == ["sync", "move", "sync"]  # the file, then the folder that it was moved in


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_mode_that_the_umask_gives(tmp_path, umask, mask, mode):
    umask(mask)
    write_atomically(tmp_path / "a.bin", b"new")
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == mode
    assert os.umask(mask) == mask


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode_from_the_first_byte_on(tmp_path, umask, mode):
    umask(0o022)
    path = tmp_path / "a.bin"
    path.write_bytes(b"secret")
    path.chmod(mode)
    with replaced(path) as file:
        file.write(b"new")
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
    assert stat.S_IMODE(path.stat().st_mode) == mode


# ----------------------------------------------------------------------------------- leftovers


def test_what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else_does(tmp_path):
    killed = [tmp_path / ".a[1].csv.new-0123abcd", tmp_path / ".a[1].csv.new-4567"]
    others = [tmp_path / ".a1.csv.new-0123", tmp_path / "a[1].csv.new-1", tmp_path / ".env"]
    for path in (*killed, *others):
        path.write_bytes(b"half")
    write_atomically(tmp_path / "a[1].csv", b"new")
    assert names(tmp_path) == sorted(["a[1].csv", *(path.name for path in others)])


@pytest.mark.skipif(os.name != "posix", reason="pipes are those of POSIX")
def test_a_pipe_under_the_name_of_a_leftover_is_no_file(tmp_path):
    os.mkfifo(tmp_path / ".a.csv.new-0123")
    write_atomically(tmp_path / "a.csv", b"new")
    assert names(tmp_path) == [".a.csv.new-0123", "a.csv"]


@pytest.mark.skipif(os.name != "posix", reason="other systems refuse to remove what is open")
def test_the_file_of_a_writer_at_work_stays(tmp_path):
    path = tmp_path / "a.csv"
    with replaced(path) as file:
        write_atomically(path, b"from another")
        file.write(b"later")
        assert len(names(tmp_path)) == 2
    assert contents(tmp_path) == {"a.csv": b"later"}


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_the_file_of_a_writer_that_was_killed_is_not_locked(tmp_path):
    path, (ready, told) = tmp_path / "a.csv", os.pipe()
    child = os.fork()
    if child == 0:
        with replaced(path) as file:
            file.write(b"half")
            os.write(told, b"x")
            signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(names(tmp_path)) == 1
    write_atomically(path, b"whole")
    assert contents(tmp_path) == {"a.csv": b"whole"}


# -------------------------------------------------------------------------------------- claims


@pytest.mark.skipif(os.name != "posix", reason="locks are those of POSIX")
def test_a_claim_is_one_process_s_until_it_is_given_back(tmp_path):
    path = tmp_path / "a.claim"
    path.touch()  # left by one that was killed
    mine = claim(path)
    assert mine is not None
    assert claim(path) is None
    mine.release()
    assert names(tmp_path) == []
    again = claim(path)
    assert again is not None
    again.release()


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_a_claim_dies_with_its_process(tmp_path):
    path, (ready, told) = tmp_path / "a.claim", os.pipe()
    child = os.fork()
    if child == 0:
        claim(path)
        os.write(told, b"x")
        signal.pause()
    os.read(ready, 1)
    assert claim(path) is None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    mine = claim(path)
    assert mine is not None
    mine.release()
    assert names(tmp_path) == []


def test_a_claim_whose_file_was_removed_before_it_was_locked_is_made_anew(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    path, flock, handles = tmp_path / "a.claim", fcntl.flock, []

    def late(handle, kind):
        if not handles:
            path.unlink()  # by the one who had it
        handles.append(handle)
        return flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    mine = claim(path)
    assert mine is not None
    assert len(handles) == 2
    assert path.exists()
    assert claim(path) is None
    mine.release()
