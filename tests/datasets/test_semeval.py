r"""SemEval-2017 Task 4 in the official format: tabs, quotes, escapes, copies, missing tweets."""

import logging

import pytest

from setconv.datasets.semeval import PAPER_PARTS, load_semeval, unescaped
from setconv.errors import DataError, ParameterError

A = "twitter-2016train-A.txt"


@pytest.fixture
def make(tmp_path):
    def write(name, *lines, end="\n"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
        data = end.encode().join([*raw, b""])
        path.write_bytes(data)
        return path

    return write


def test_a_line_of_subtask_a_is_id_label_text(make):
    dataset = load_semeval(make(A, "11\tpositive\tlovely day", "12\tnegative\train again"))
    assert dataset.texts == ["lovely day", "rain again"]
    assert dataset.labels.tolist() == ["positive", "negative"]
    assert dataset.ids == ["11", "12"]
    assert dataset.groups.tolist() == ["11", "12"]
    assert A in dataset.provenance


def test_marks_trailing_columns_line_ends_and_blank_lines_change_nothing(make):
    path = make(
        A, "\ufeff1\tpositive\tone\t", "", "2\tneutral\ttwo\t\tx", "3\tnegative\t3", end="\r\n"
    )
    assert load_semeval(path).texts == ["one", "two", "3"]
    assert load_semeval(path).ids[0] == "1"
    assert not load_semeval(path).problems


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (r"it\u2019s late\u002c now", "it’s late, now"),  # noqa: RUF001
        (r"\ud83d\ude00 smile", "\N{GRINNING FACE} smile"),
        (r"half of one \ud83d only", "half of one � only"),
        ("twice &amp;amp; &amp;#8217;", "twice & ’"),  # noqa: RUF001
        ("R&B?a=1&copy=2 &Blue; &notit;", "R&B?a=1&copy=2 &Blue; &notit;"),
        ('"she said ""no"", twice"', 'she said "no", twice'),
        ('"known as """"the day"""""', 'known as "the day"'),
        (r'"it read: \""go on\"""', 'it read: "go on"'),
        ('"to be" or "not to be"', '"to be" or "not to be"'),
        (r"\m/ =\ \o/", r"\m/ =\ \o/"),
        (r'"hands up /o\"', "hands up /o\\"),
        ('"', '"'),
    ],
)
def test_texts_are_freed_of_the_escapes_that_the_files_have(raw, text):
    assert unescaped(raw) == text


def test_lines_that_cannot_be_used_are_left_out_and_counted(make, caplog):
    path = make(
        A,
        "1\tpositive\tgood",
        "2\tpositive\tNot Available",
        "3\tneutral",
        "4\tUNKNOWN\twho knows",
        "just words",
        "\tneutral\tno id",
        "7\tnegative\t  ",
        b"8\tnegative\tcaf\xe9",
    )
    with caplog.at_level(logging.WARNING, "setconv"):
        dataset = load_semeval(path)
    assert dataset.texts == ["good", "café"]
    assert dataset.problems.first == {
        "text not available: left out": [f"{A}, line 2"],
        "no text: left out": [f"{A}, line 3", f"{A}, line 7"],
        "unknown label: left out": [f"{A}, line 4"],
        "too few columns: left out": [f"{A}, line 5"],
        "no id: left out": [f"{A}, line 6"],
        "not UTF-8: read as cp1252": [f"{A}, line 8"],
    }
    assert "7 problems" in caplog.text


@pytest.mark.parametrize("lines", [("1\tpositive", "2\tneutral"), ("1\t-2\tx",), ()])
def test_a_file_without_a_usable_line_is_refused(make, lines):
    with pytest.raises(DataError, match="no usable line"):
        load_semeval(make(A, *lines))


def test_copies_stay_and_have_one_group(make):
    path = make(A, "1\tpositive\tx", "2\tneutral\ty", "1\tpositive\tx", "2\tnegative\ty")
    found = load_semeval(path)
    assert found.groups.tolist() == ["1", "2", "1", "2"]
    assert "2 copies of earlier tweets kept" in found.provenance
    conflict = {"a tweet seen before, with another label: kept": [f"{A}, line 4"]}
    assert found.problems.first == conflict
    assert load_semeval(path, binary="negative").class_counts == {"negative": 1, "not negative": 3}
    with pytest.raises(ParameterError):
        load_semeval(path, binary="sad")


def test_a_folder_gives_the_files_of_the_subtask(make, tmp_path):
    make(f"Subtask_A/{A}", "1\tpositive\ta")
    make(f"Subtask_A/._{A}", "9\tpositive\tnot a file of its own")
    make("SemEval2017-task4-test.subtask-A.english.txt", "2\tnegative\tb")
    make("SemEval2017_task4_subtaskA_dev.tsv", "5\tnegative\te")
    make("twitter-2016train-BD.txt", "3\ttea\tpositive\tc")
    make("README.txt", "read me")
    assert sorted(load_semeval(tmp_path).texts) == ["a", "b", "e"]


def test_parts_choose_files_by_year_and_role(make, tmp_path):
    for part in (*PAPER_PARTS, "2014test", "2016devtest"):
        make(f"twitter-{part}-A.txt", f"1{part}\tneutral\t{part}")
    assert load_semeval(tmp_path, parts="paper").texts == list(PAPER_PARTS)
    assert load_semeval(tmp_path, parts=["2016dev", "2014test"]).texts == ["2016dev", "2014test"]


def test_a_part_that_is_not_there_is_refused(make, tmp_path):
    make("twitter-2013train-A.txt", "1\tneutral\tx")
    with pytest.raises(DataError, match="2013dev"):
        load_semeval(tmp_path, parts="paper")
    with pytest.raises(ParameterError, match="'paper'"):
        load_semeval(tmp_path, parts="2013train")
