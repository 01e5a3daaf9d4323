"""Whatever is wrong with a request: the right status, a sentence, and the service goes on."""

import gzip
import json

import pytest
from services import client

ROW = {"amount": 1, "hour": 2, "country": "DE", "channel": "web", "new": True, "place": [1, 2, 3]}
ROW |= {"day": "2024-02-29"}


@pytest.fixture(scope="module")
def ask(table):
    with client(table.folder, rows=50, body_bytes=20_000, text_length=100) as ask:
        yield ask
        assert ask.post("/predict", json={"rows": [ROW]}).status_code == 200


def row(**changes):
    return {"rows": [ROW | changes]}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (row(), None),
        (row(constant="anything", amount=None, day=None, country=None, channel="new one"), None),
        (row(day="2024-01-31 18:30:01.5"), None),
        (row(amount=-3e38, hour=10**30), None),
        (row(amonut=1), "has 'amonut', which is not known. Did you mean 'amount'"),
        ({"rows": [{k: v for k, v in ROW.items() if k != "day"}]}, "has no 'day': give a date"),
        (row(amount="1"), "rows[0]['amount'] is '1': give a number"),
        (row(amount=True), "rows[0]['amount'] is true"),
        (row(amount=1e39), "rows[0]['amount'] is 1e+39"),
        (row(new=1), "give true or false"),
        (row(country=7), "give a text"),
        (row(country="x" * 101), "is a text of 101 characters: give a text of at most 100"),
        (row(day="yesterday"), "give a date such as 2024-01-31"),
        (row(day="2023-02-29"), "give a date"),
        (row(day="1900-02-29"), "give a date"),
        (row(place=[1, 2]), "is a list of 2: give a list of 3 numbers"),
        (row(place=[1, 2, None]), "rows[0]['place'][2] is null"),
        (row(place=None), "give a list of 3 numbers"),
        ({"rows": []}, "rows is a list of 0: give a list of 1 to 50 rows"),
        ({"rows": [ROW] * 51}, "rows is a list of 51"),
        ({"rows": ROW}, "rows is an object"),
        ({"rows": [[1, 2]]}, "rows[0] is a list of 2: give an object"),
        ({"row": [ROW]}, "Did you mean 'rows'?"),
        ({}, "has no 'rows'"),
        ([], "The body is a list of 0"),
        ("rows", "The body is 'rows'"),
        (7, "The body is 7"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_what_to_give(ask, body, why):
    answer = ask.post("/predict", json=body)
    assert answer.status_code == (200 if why is None else 422), answer.text
    assert why is None or why in answer.json()["error"]
    if why is not None and "rows[0]" in why:
        assert answer.json()["row"] == 0


JSON = {"content-type": "application/json"}
CSV = {"content-type": "text/csv"}


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b'{"rows": [', JSON, 422, "not JSON in UTF-8: Expecting value: line 1"),
        (b'{"rows": [NaN]}', JSON, 422, "NaN is no number there; null stands for a missing"),
        (b'{"rows": [-Infinity]}', JSON, 422, "-Infinity is no number"),
        (b'{"rows": ["\xff"]}', JSON, 422, "can't decode byte 0xff"),
        (b'{"rows": [' + b"1" * 5000 + b"]}", JSON, 422, "not JSON"),
        (b"[" * 19_000, JSON, 422, "not JSON"),
        (json.dumps(row(country="\ud800")).encode(), JSON, 422, "give a text"),
        (b"", JSON, 422, "not JSON"),
        (b"x" * 20_001, JSON, 413, "The body has 20,001 bytes, at most 20,000 are read"),
        (b"x" * 50_000_000, JSON, 413, "50,000,000 bytes"),
        (b"{}", {"content-type": "text/plain"}, 415, "as JSON, not compressed"),
        (b"{}", {}, 415, "Content-Type: application/json"),
        (b"a,b\n1,2", CSV, 415, "Content-Type: application/json"),
        (gzip.compress(b"{}"), JSON | {"content-encoding": "gzip"}, 415, "not compressed"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_a_sentence(ask, body, headers, status, why):
    answer = ask.post("/predict", content=body, headers=headers)
    assert answer.status_code == status
    assert why in answer.json()["error"]
    assert "Traceback" not in answer.text


def test_a_hundred_thousand_rows_or_a_text_of_two_megabytes_are_refused(vectors, texts):
    with client(vectors.folder) as ask:
        answer = ask.post("/predict", json={"rows": [[0.5]] * 100_000})
        assert answer.status_code == 422
        assert "rows is a list of 100,000: give a list of 1 to 1,000 rows" in answer.text
    with client(texts.folder) as ask:
        answer = ask.post("/predict", json={"rows": ["x" * 2_000_000]})
        assert answer.status_code == 422
        assert "a text of 2,000,000 characters" in answer.text


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000", None, 1, ["a"]])
def test_a_blank_text_is_none(texts, text):
    with client(texts.folder) as ask:
        answer = ask.post("/predict", json={"rows": ["good", text]})
    assert answer.status_code == 422
    assert answer.json()["row"] == 1


def test_there_is_no_other_address_or_method(ask):
    assert "see /docs" in ask.get("/nowhere").json()["error"]
    for path, allowed in (("/predict", "POST"), ("/model", "GET")):
        answer = ask.request("DELETE", path)
        assert answer.status_code == 405
        assert allowed in answer.headers["allow"]


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "There is no token"),
        ({"authorization": "Bearer wrong"}, "The token is wrong"),
        ({"authorization": "Bearer tokem"}, "The token is wrong"),
        ({"authorization": "Basic token"}, "The token is wrong"),
        ({"authorization": b"Bearer \xff"}, "The token is wrong"),
    ],
)
def test_without_the_right_token_only_what_tells_nothing_is_answered(vectors, headers, why):
    with client(vectors.folder, token="token") as ask:
        answer = ask.post("/predict", json={"rows": vectors.rows}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert why in answer.json()["error"]
        assert ask.get("/model", headers=headers).status_code == 401
        assert ask.get("/metrics", headers=headers).status_code == 401
        for path in ("/", "/docs", "/openapi.json", "/health/live", "/health/ready", "/ping"):
            assert ask.get(path).status_code == 200
        right = {"authorization": "bearer token"}
        assert ask.get("/model", headers=right).status_code == 200


def test_hostile_labels_and_columns_are_text_on_every_page(place):
    import pandas as pd
    from small_models import make_rows, small

    X, y = make_rows(features=3)
    frame = pd.DataFrame(X, columns=["<script>alert(1)</script>", "</pre><img src=x>", "a"])
    labels = ["<b>yes</b>" if one else "</script>" for one in y]
    small(objective="balanced", max_steps=2).fit(frame, labels).save(place / "hostile")
    with client(place / "hostile") as ask:
        assert "<script>alert" not in ask.get("/docs").text
        assert "<img" not in ask.get("/docs").text
        assert ask.get("/model").headers["content-type"] == "application/json"


def test_every_answer_forbids_what_it_does_not_need(ask):
    for path in ("/", "/docs", "/model", "/nowhere"):
        headers = ask.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    policy = ask.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2


def test_behind_a_proxy_the_prefix_may_be_there_or_not(vectors):
    with client(vectors.folder, root_path="/models/a", token="t") as ask:
        assert ask.get("/health/live").status_code == 200
        assert ask.get("/models/a/health/live").status_code == 200
        assert ask.get("/models/a/model").status_code == 401
        assert ask.get("/openapi.json").json()["servers"] == [{"url": "/models/a"}]


def test_too_many_rows_that_wait_are_refused_and_too_long_ones_given_up(vectors, monkeypatch):
    import asyncio
    import threading

    import httpx

    from setconv.serve import Settings, create_app

    app = create_app(vectors.folder, Settings(waiting=3, seconds=0.2))
    service, free = app.state.service, threading.Event()
    served = service._now[0]

    def waits(_, rows):
        free.wait()
        return served.predict(rows)

    monkeypatch.setattr(service._rows, "_run", waits)

    async def crowd():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://it") as ask:
            body = {"rows": vectors.rows[:1]}
            found = await asyncio.gather(*(ask.post("/predict", json=body) for _ in range(9)))
            free.set()
            while (await ask.post("/predict", json=body)).status_code == 429:
                await asyncio.sleep(0)  # those that were given up are still counted
            return found

    found = asyncio.run(crowd())
    service.close()
    codes = [one.status_code for one in found]
    assert codes.count(429) >= 5
    assert set(codes) == {429, 503}
    assert all(one.headers["retry-after"] == "1" for one in found)
