"""Files and folders that are there whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from setconv.io.files import replace_folder, write_atomically


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
    assert events == ["sync", "move"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_mode_that_the_umask_gives(tmp_path, umask, mask, mode):
    umask(mask)
    write_atomically(tmp_path / "a.bin", b"new")
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == mode
    assert os.umask(mask) == mask


# ---------------------------------------------------------------------------------- one folder


def test_a_folder_is_written_with_its_parents(tmp_path):
    replace_folder(tmp_path / "a" / "b" / "model", {"one": b"1", "two": b"2"})
    assert contents(tmp_path / "a" / "b" / "model") == {"one": b"1", "two": b"2"}
    assert names(tmp_path / "a" / "b") == ["model"]


def test_a_folder_that_was_there_is_replaced_with_all_it_held(tmp_path):
    replace_folder(tmp_path / "model", {"one": b"1", "old": b"0"})
    replace_folder(tmp_path / "model", {"one": b"2"})
    assert contents(tmp_path / "model") == {"one": b"2"}
    assert names(tmp_path) == ["model"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o755), (0o077, 0o700)])
def test_a_folder_has_the_mode_that_the_umask_gives(tmp_path, umask, mask, mode):
    umask(mask)
    replace_folder(tmp_path / "model", {"one": b"1"})
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == mode


def test_a_failure_while_the_files_are_written_changes_nothing(tmp_path, monkeypatch):
    replace_folder(tmp_path / "model", {"one": b"old", "two": b"old"})
    monkeypatch.setattr(Path, "replace", failing(2))
    with pytest.raises(OSError, match="No space"):
        replace_folder(tmp_path / "model", {"one": b"new", "two": b"new"})
    assert contents(tmp_path / "model") == {"one": b"old", "two": b"old"}
    assert names(tmp_path) == ["model"]


def test_a_failure_while_the_new_folder_is_moved_brings_the_old_one_back(tmp_path, monkeypatch):
    replace_folder(tmp_path / "model", {"one": b"old"})
    # The moves are: the file inside the new folder, the old folder aside, the new one in place.
    monkeypatch.setattr(Path, "replace", failing(3))
    with pytest.raises(OSError, match="No space"):
        replace_folder(tmp_path / "model", {"one": b"new"})
    assert contents(tmp_path / "model") == {"one": b"old"}
    assert names(tmp_path) == ["model"]


def test_a_failure_while_the_old_folder_is_moved_aside_leaves_no_litter(tmp_path, monkeypatch):
    replace_folder(tmp_path / "model", {"one": b"old"})
    monkeypatch.setattr(Path, "replace", failing(2))
    with pytest.raises(OSError, match="No space"):
        replace_folder(tmp_path / "model", {"one": b"new"})
    assert contents(tmp_path / "model") == {"one": b"old"}
    assert names(tmp_path) == ["model"]


def test_a_failure_in_a_place_that_was_free_leaves_it_free(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "replace", failing(2))
    with pytest.raises(OSError, match="No space"):
        replace_folder(tmp_path / "model", {"one": b"new"})
    assert names(tmp_path) == []


def test_a_process_that_dies_between_the_moves_leaves_the_old_folder_aside(tmp_path, monkeypatch):
    replace_folder(tmp_path / "model", {"one": b"old"})
    real = Path.replace

    def die(self, target):
        if Path(target).name == "model":
            raise SystemError  # neither move into place succeeds, as if the process were gone
        return real(self, target)

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(SystemError):
        replace_folder(tmp_path / "model", {"one": b"new"})
    (aside,) = tmp_path.iterdir()
    assert aside.name.startswith(".model.old-")
    assert contents(aside) == {"one": b"old"}
