"""What the service says: the library's own numbers to the bit, whatever else is asked meanwhile."""

import asyncio
import json

import httpx
import numpy as np
import pytest
from services import client, plain

from setconv import load
from setconv.serve import Settings, create_app

ALL = ["vectors", "named", "many", "table", "texts", "encoded"]


@pytest.mark.parametrize("case", ALL, indirect=True)
def test_answers_are_those_of_the_library_to_the_bit(case):
    with client(case.folder) as ask:
        found = ask.post("/predict", json={"rows": case.rows}).json()
        alone = [ask.post("/predict", json={"rows": [row]}).json() for row in case.rows[:5]]
    assert plain(found["predictions"]) == case.expected()
    assert [plain(one["predictions"])[0] for one in alone] == case.expected(range(5))
    assert found["model"]["name"] == case.folder.name


@pytest.mark.parametrize("case", ["table", "many", "texts"], indirect=True)
def test_answers_that_were_batched_with_others_are_equal_to_those_alone(case):
    app = create_app(case.folder, Settings())
    transport = httpx.ASGITransport(app)
    sizes = [1, 3, 2, 1, 5, 1, 7]

    async def all_at_once():
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as ask:
            starts = np.cumsum([0, *sizes]).tolist()
            parts = [case.rows[a : a + n] for a, n in zip(starts, sizes, strict=False)]
            wrong = [[None], [{"no": 1}], ["x" * 10**6]]
            bodies = [part for pair in zip(parts, wrong * 3, strict=False) for part in pair]
            asked = [ask.post("/predict", json={"rows": rows}) for rows in bodies]
            return await asyncio.gather(*asked)

    found = asyncio.run(all_at_once())
    app.state.service.close()
    right = [one for one in found if one.status_code == 200]
    answers = [answer for one in right for answer in plain(one.json()["predictions"])]
    assert len(right) == len(sizes)
    assert answers == case.expected(range(sum(sizes)))
    assert {one.status_code for one in found} == {200, 422}


def test_the_fault_of_one_request_is_told_to_no_other(vectors, monkeypatch):
    app = create_app(vectors.folder, Settings())
    served = type(app.state.service._now[0])
    predict = served.predict

    def fails(self, rows):
        if any(row[0] == 7.0 for row in rows):
            raise RuntimeError("a secret of the one with 7.0")
        return predict(self, rows)

    monkeypatch.setattr(app.state.service._rows, "_run", fails)
    rows = [*vectors.rows[:4], [7.0] * len(vectors.rows[0])]

    async def all_at_once():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as ask:
            asked = [ask.post("/predict", json={"rows": [row]}) for row in rows]
            return await asyncio.gather(*asked)

    found = asyncio.run(all_at_once())
    app.state.service.close()
    assert [one.status_code for one in found] == [200] * 4 + [500]
    assert [plain(one.json()["predictions"])[0] for one in found[:4]] == vectors.expected(range(4))
    assert "secret" not in found[4].text


@pytest.mark.parametrize("case", ALL, indirect=True)
def test_the_card_tells_what_the_model_takes_and_how_it_decides(case):
    model = load(case.folder)
    with client(case.folder, rows=7) as ask:
        card = ask.get("/model").json()
        again = ask.post("/predict", json={"rows": case.rows[:1]}).json()["model"]
    assert card["classes"] == model.classes_.tolist()
    assert card["class_counts"] == model.class_counts_.tolist()
    assert card["threshold"] == np.asarray(model.threshold_).tolist()
    assert card["limits"]["rows"] == 7
    assert card["report"] == model.report_.to_dict()
    assert {"name": card["name"], "version": card["version"]} == again
    assert len(card["version"]) == 64


def test_the_columns_of_a_table_are_told_with_what_is_usual(table):
    with client(table.folder) as ask:
        columns = {one["name"]: one for one in ask.get("/model").json()["columns"]}
        usual = {name: one["usual"] for name, one in columns.items()}
        assert ask.post("/predict", json={"rows": [usual]}).status_code == 200
    assert {name: one["kind"] for name, one in columns.items()} == {
        "amount": "number",
        "hour": "number",
        "country": "category",
        "channel": "category",
        "new": "boolean",
        "day": "date",
        "place": "vector",
    }
    assert columns["place"]["width"] == 3
    assert columns["country"]["usual"] in columns["country"]["categories"]


@pytest.mark.parametrize("case", ["table", "texts", "many"], indirect=True)
def test_an_explanation_has_the_contributions_of_the_library(case):
    from setconv.explain import feature_contributions, usual_values, word_contributions

    model = load(case.folder)
    with client(case.folder) as ask:
        asked = {"rows": case.rows[:2], "top": 3}
        found = ask.post("/explain", json=asked).json()["explanations"]
        label = model.classes_.tolist()[0]
        other = ask.post("/explain", json=asked | {"class": label}).json()["explanations"]
    assert plain([one["prediction"] for one in found]) == case.expected(range(2))
    assert [one["class"] for one in other] == [label] * 2
    if isinstance(case.rows[0], str):
        values = [word_contributions(model, text).values for text in case.rows[:2]]
    elif isinstance(case.rows[0], list):
        given = {"background": usual_values(model)}
        values = feature_contributions(model, np.array(case.rows[:2]), **given).values
    else:
        return
    for one, all_of_it in zip(found, values, strict=True):
        strongest = sorted(np.abs(all_of_it).tolist(), reverse=True)[:3]
        assert [abs(part["contribution"]) for part in one["contributions"]] == strongest


def test_another_decision_is_that_of_the_library_and_changes_nothing(vectors):
    model, X = load(vectors.folder), np.array(vectors.rows)
    with client(vectors.folder) as ask:
        before = ask.get("/model").json()
        rows = {"rows": vectors.rows}
        moved = ask.post("/decision", json={"objective": "f1", "prior": 0.3, **rows}).json()
        cut = ask.post("/decision", json={"threshold": 0.5, **rows}).json()
        assert ask.get("/model").json() == before
        assert ask.post("/predict", json=rows).json()["predictions"] != moved["predictions"]
    model.set_prior(0.3).set_objective("f1")
    said = model.predictions(X)
    assert moved["threshold"] == model.threshold_
    assert moved["report"] == model.report_.to_dict()
    assert moved["prior"] == {"0": 0.7, "1": 0.3}
    assert [one["label"] for one in moved["predictions"]] == said.labels.tolist()
    decided = [one["label"] for one in cut["predictions"]]
    assert decided == (vectors.said.scores > 0.5).astype(int).tolist()
    assert cut["threshold_basis"].startswith("stated, not chosen")


def test_a_stated_threshold_is_judged_on_the_out_of_fold_rows(vectors):
    found = load(vectors.folder).predict_out_of_fold()
    said, truth = found.scores > 0.5, found.truth == 1
    with client(vectors.folder) as ask:
        report = ask.post("/decision", json={"threshold": 0.5}).json()["report"]
    right = [[int((~said & ~truth).sum()), int((said & ~truth).sum())]]
    right += [[int((~said & truth).sum()), int((said & truth).sum())]]
    assert report["confusion"] == right


@pytest.mark.parametrize(
    ("objective", "why"),
    [("recall>=0.999 @ 99.9%", "Ask for less, or add rows."), ([[0, 0], [0, 0]], "objective")],
)
def test_what_cannot_be_decided_is_a_conflict_with_the_reason(vectors, objective, why):
    with client(vectors.folder) as ask:
        answer = ask.post("/decision", json={"objective": objective})
    assert answer.status_code == 409
    assert why in answer.json()["error"]


def test_the_figures_count_what_was_asked_and_decided(vectors):
    with client(vectors.folder) as ask:
        ask.post("/predict", json={"rows": vectors.rows[:30]})
        ask.post("/predict", json={"rows": [[0]]})
        ask.get("/nowhere")
        lines = ask.get("/metrics").text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    of = 'setconv_requests_total{{endpoint="{}",status="{}"}}'.format
    assert float(found[of("/predict", 200)]) == float(found[of("/predict", 422)]) == 1
    assert float(found[of("other", 404)]) == 1
    assert float(found["setconv_rows_total"]) == float(found["setconv_score_count"]) == 30
    decided = {key: float(one) for key, one in found.items() if "decided_total" in key}
    labels = vectors.said.labels[:30].tolist()
    assert decided == {
        f'setconv_decided_total{{label="{label}"}}': float(labels.count(label))
        for label in set(labels)
    }


def test_a_reload_serves_the_new_model_and_a_broken_one_is_refused(vectors, tmp_path, caplog):
    from small_models import make_rows, small

    folder = tmp_path / "model"
    load(vectors.folder).save(folder)
    with client(folder) as ask:
        first = ask.get("/model").json()["version"]
        X, y = make_rows(seed=3)
        small(objective="f1", max_steps=2).fit(X, y).save(folder)
        ask.app.state.service.reload()
        second = ask.get("/model").json()["version"]
        content = bytearray((folder / "model.safetensors").read_bytes())
        content[-1] ^= 1
        (folder / "model.safetensors").write_bytes(content)
        ask.app.state.service.reload()
        assert "is damaged" in caplog.text
        assert ask.get("/model").json()["version"] == second != first
        rows = ask.post("/predict", json={"rows": vectors.rows}).json()["model"]["version"]
        assert rows == second


def test_no_text_is_kept_in_the_cache_of_embeddings(encoded, tmp_path, monkeypatch):
    monkeypatch.setenv("SETCONV_CACHE", str(tmp_path / "cache"))
    with client(encoded.folder) as ask:
        assert ask.post("/predict", json={"rows": ["the cat"]}).status_code == 200
    assert not (tmp_path / "cache").exists()


def test_the_log_has_texts_only_if_asked_for(texts, caplog):
    caplog.set_level("INFO", "setconv.serve")
    for told in (False, True):
        caplog.clear()
        with client(texts.folder, log_texts=told) as ask:
            ask.post("/predict", json={"rows": ["a very private text"]})
        (line,) = [one.msg for one in caplog.records if isinstance(one.msg, dict)]
        assert line["path"] == "/predict"
        assert line["status"] == 200
        assert ("private" in json.dumps(line)) is told
