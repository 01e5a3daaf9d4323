"""Models of earlier formats, brought to the present one."""

import json
from pathlib import Path

import numpy as np
import pytest

from setconv import load
from setconv.errors import ModelFileError, ParameterError
from setconv.persistence import FORMAT_VERSION, read_model
from setconv.upgrade import upgrade

FOLDER = Path(__file__).parent / "fixtures" / "format_1"
KINDS = ["binary", "multiclass"]


def expected(kind):
    found = json.loads((FOLDER / "expected.json").read_text())[kind]
    return np.array(found["rows"]), found


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_format_1_decides_by_the_papers_rule_as_it_did(kind):
    loaded = load(FOLDER / kind)
    rows, found = expected(kind)
    assert (loaded.n_members, loaded.objective) == (1, None)
    np.testing.assert_allclose(loaded.predict_proba(rows), found["probabilities"], atol=1e-6)
    assert loaded.predict(rows).tolist() == found["labels"]
    np.testing.assert_array_equal(loaded.decision_function(rows), loaded.score_function(rows))
    assert not np.any(loaded.threshold_)
    assert not hasattr(loaded, "oof_report_")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_format_1_is_saved_in_the_present_format_and_stays_the_same(kind, tmp_path):
    loaded = load(FOLDER / kind)
    loaded.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["format_version"] == (
        FORMAT_VERSION
    )
    rows, _ = expected(kind)
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(rows), loaded.decision_function(rows))
    np.testing.assert_array_equal(again.predict_proba(rows), loaded.predict_proba(rows))
    assert again.get_params() == loaded.get_params()


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_format_1_can_be_fitted_on_and_anew(kind):
    loaded = load(FOLDER / kind)
    rows, found = expected(kind)
    before = loaded.class_counts_.sum()
    loaded.partial_fit(rows, found["labels"])
    assert loaded.class_counts_.sum() == before + len(rows)
    with pytest.raises(ParameterError, match="out-of-fold"):
        loaded.set_objective("f1")
    loaded.set_params(max_steps=2, early_stopping=False, progress=False)
    assert loaded.fit(rows, found["labels"]).n_steps_ == 2


def test_a_model_of_the_present_format_is_left_alone():
    saved = read_model(FOLDER.with_name(f"format_{FORMAT_VERSION}") / "binary")
    assert upgrade(saved) is saved


def test_an_upgrade_leaves_what_was_read_as_it_was():
    saved = read_model(FOLDER / "binary")
    names, keys = set(saved.tensors), set(saved.config)
    upgraded = upgrade(saved)
    assert set(saved.tensors) == names
    assert set(saved.config) == keys
    assert upgraded.config["views"] == [{"kind": "standard", "clip": 5.0}]
    assert {"views/0/mean", "views/0/scale", "levels", "spreads"} <= set(upgraded.tensors)


def test_a_damaged_model_of_format_1_is_a_clear_error(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((FOLDER / "binary" / name).read_bytes())
    config = json.loads((folder / "config.json").read_text())
    del config["scaled"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="scaled"):
        load(folder)
