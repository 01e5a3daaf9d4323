"""Bad input: a clear message, a non-zero exit code, nothing lost."""

import json

import pytest


def fit(setconv, path, *options, check=3):
    command = ("fit", path, "--encoder", "tfidf", "-o", path.with_suffix(".model"), *options)
    return setconv(*command, check=check)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("text,label\na,b\n", ["--text", "txt"], ["'txt'", "Did you mean 'text'", "--text"]),
        ("one,two\na,b\n", [], ["--label"]),
        ('text,label\n"two\nlines",a\nfine,b,c\n', [], ["line 4"]),
        ("text,label\na,é\n\xff,b\n", ["--encoding", "ascii"], ["--encoding cp1252"]),
        ("text,label\n", [], ["no rows"]),
        ("text,label\na b,x\nc d,x\n", ["--text", "text", "--label", "label"], ["one class"]),
        ("text,label\none,a\ntwo,\n", ["--text", "text"], ["row 2", "--empty skip"]),
    ],
)
def test_a_file_that_cannot_be_learned_from(setconv, tmp_path, content, options, said):
    path = tmp_path / "bad.csv"
    path.write_text(content, encoding="latin-1")
    done = fit(setconv, path, *options)
    assert all(one in done.err for one in said), done.err
    assert not (tmp_path / "bad.model").exists()


def test_hostile_texts_are_just_texts(setconv, fitted):
    texts = ["🔥" * 50, "نار في السوق", "nul\x00byte", "fire " * 400_000, "</script>"]
    data = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    done = setconv(
        *("predict", fitted[1], "-", "--format", "jsonl", "--keep", "none"), stdin=data.encode()
    )
    assert len(done.out.splitlines()) == 6


def test_a_missing_file_and_a_folder_that_is_no_model(setconv, folder, tmp_path):
    assert "train.csv" in fit(setconv, folder / "trian.csv", check=None).err
    assert "not a setconv model" in setconv("predict", tmp_path, folder / "train.csv", check=4).err


def test_the_output_folder_is_never_replaced_if_it_is_not_a_model(setconv, folder, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    setconv("fit", folder / "train.csv", "--encoder", "tfidf", "-o", tmp_path, check=4)
    assert (tmp_path / "README.md").read_text() == "mine"
