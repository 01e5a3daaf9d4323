"""The page of the service in a real browser: what it shows is what the library says."""

import csv
import io
import json
import socket
import threading
import urllib.request
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from browsing import Visit, chromium, needs_chromium, visits
from reading import HOSTILE
from small_models import make_rows, small
from text_models import write_texts

from setconv import SetConvTextClassifier, load
from setconv.pipelines import SetConvTableClassifier

pytestmark = needs_chromium

QUICK = {"max_steps": 60, "encoder": (16,), "out_features": 8}
TOKEN = "open sesame"


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@contextmanager
def serving(folder, **settings):
    """Serve a model on loopback, in a thread; give its address."""
    uvicorn = pytest.importorskip("uvicorn")
    from setconv.serve.app import create_app
    from setconv.serve.served import Settings

    app = create_app(folder, Settings(**settings))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    # What connects before the server runs waits in the socket's queue.
    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        yield f"http://127.0.0.1:{door.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


def ask_plainly(address, path, body):
    request = urllib.request.Request(
        address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def write_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    fraud = rng.random(n) < 0.2
    table = {
        "amount": (rng.gamma(2, 40, n) + 120 * fraud).round(2).tolist(),
        "age": [None if k % 17 == 0 else int(a) for k, a in enumerate(rng.integers(18, 80, n))],
        "city": rng.choice(["Rome", "Oslo", "Lima"], n).tolist(),
        "online": (rng.random(n) < 0.3 + 0.5 * fraud).tolist(),
        "since": [f"20{year}-03-11" for year in rng.integers(10, 24, n)],
    }
    return table, np.where(fraud, "fraud", "fine")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Saved models by name."""
    root = tmp_path_factory.mktemp("models")
    texts, labels = write_texts(240)
    table, kinds = write_table()
    X, y = make_rows(400, classes=4, minority=0.3, seed=1)
    attacked = np.where(labels == "fire", HOSTILE, f"calm {HOSTILE}")
    columns = {f"{HOSTILE}{name}": values for name, values in table.items()}
    columns[f"{HOSTILE}city"] = [f"{city} {HOSTILE}" for city in table["city"]]
    models = {
        "incidents": SetConvTextClassifier("tfidf", small(**QUICK)).fit(texts, labels),
        "payments": SetConvTableClassifier(classifier=small(**QUICK)).fit(pa.table(table), kinds),
        "sensors": small(**QUICK).fit(X, y),
        "hostile texts": SetConvTextClassifier("tfidf", small(**QUICK)).fit(texts, attacked),
        "hostile table": SetConvTableClassifier(classifier=small(**QUICK)).fit(
            pa.table(columns), np.where(kinds == "fraud", HOSTILE, "fine")
        ),
    }
    for name, model in models.items():
        model.save(root / name)
    return root


@pytest.fixture(scope="module")
def services(folders):
    """From the name of a model to the address of its service; each starts once."""
    started, opened = {}, []

    def service(name, **settings):
        key = name, *settings.items()
        if key not in started:
            opened.append(serving(folders / name, **settings))
            started[key] = opened[-1].__enter__()
        return started[key]

    yield service
    for one in opened:
        one.__exit__(None, None, None)


class Asked(Visit):
    """An open page of a service."""

    def decide(self, *values):
        """Fill the fields of the form in their order, as far as given, and press the button."""
        for field, value in zip(self.fields(), values, strict=False):
            tag = field.evaluate("field => field.tagName")
            field.select_option(value) if tag == "SELECT" else field.fill(value)
        self.tab.click("#ask button")

    def fields(self):
        return self.tab.locator("#fields :is(input, select, textarea)").all()

    def verdict(self):
        self.tab.wait_for_selector("#answer[aria-busy=false] > *")
        return self.tab.inner_text("#answer strong").removeprefix("▲ ")

    def moved(self):
        """Wait until the decision that is tried has come, and return its figures by name."""
        self.tab.wait_for_selector("#moved[aria-busy=false]")
        self.tab.wait_for_selector("#figures th:nth-child(3)")
        rows = self.tab.locator("#figures tbody tr").all()
        return {row.locator("th").inner_text(): shares(row) for row in rows}

    def slide(self, value):
        self.tab.locator("#explorer-slider").evaluate(
            "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input')); }",
            value,
        )

    def upload(self, content, name="new.csv"):
        given = {"name": name, "mimeType": "text/csv", "buffer": content}
        self.tab.set_input_files("#file", given)

    def run(self):
        self.tab.click("#go")
        self.tab.wait_for_selector("#save:not([hidden])")
        self.tab.wait_for_selector("#state[aria-busy=false]")

    def download(self):
        with self.tab.expect_download() as waiting:
            self.tab.click("#save")
        return waiting.value.path().read_bytes().decode()

    def errors(self):
        """What the console says, requests that were refused as they had to be aside."""
        return [one for one in self.console if "Failed to load resource" not in one]


def shares(row):
    return [float(cell.inner_text().split()[0]) for cell in row.locator("td").all()]


def near(value):
    """Of three digits the last may be rounded either way."""
    return pytest.approx(value, abs=5.1e-4)


def shown(value):
    return f"{value:.3f}".replace("-", "\u2212")


@pytest.fixture
def visit(browser, services):
    with visits(browser, Asked) as visit:

        def visit_service(name, *, settings=None, **options):
            opened = visit(services(name, **settings or {}), **options)
            opened.tab.wait_for_selector("#one:not([hidden]), #gate[open]")
            return opened

        yield visit_service


@pytest.fixture
def model_of(folders):
    return lambda name: load(folders / name)


def as_csv(rows, **options):
    written = io.StringIO()
    csv.writer(written, **options).writerows(rows)
    return written.getvalue().encode()


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


# ---------------------------------------------------------------------------------- one row


def test_a_text_is_decided_as_the_library_decides(visit, model_of):
    opened, model = visit("incidents"), model_of("incidents")
    for text in ("smoke and flames burning", "pump checked today clean oil"):
        opened.decide(text)
        opened.tab.wait_for_selector(f"#answer blockquote:has-text('{text.split()[0]}')")
        said = model.predictions([text])
        assert opened.verdict() == said.labels[0]
        assert f"Probability {100 * said.probabilities.max():.1f} %" in opened.tab.inner_text(
            ".says"
        )
        assert f"score, {shown(said.scores[0])}," in opened.tab.inner_text("#answer .note")
    words = opened.tab.locator("#answer tbody th").all_inner_texts()
    assert 0 < len(words) <= 8
    assert set(words) <= set(text.split())
    assert opened.errors() == []


def test_the_form_of_a_table_starts_with_what_is_usual_and_takes_what_is_missing(visit, model_of):
    opened, model = visit("payments"), model_of("payments")
    usual = [field.input_value() for field in opened.fields()]
    for given in (usual, ["412.5", "", "(another)", "True", "2015-01-31"]):
        opened.decide(*given)
        amount, age, city, online, since = given
        row = {
            "amount": [float(amount)],
            "age": pa.array([float(age) if age else None], pa.float64()),
            "city": [city],
            "online": [online == "True"],
            "since": [since],
        }
        said = model.predictions(pa.table(row))
        opened.tab.get_by_text(f"score, {shown(said.scores[0])},").wait_for()
        assert opened.verdict() == said.labels[0]


def test_numbers_are_decided_in_a_row_a_class(visit, model_of):
    opened, model = visit("sensors"), model_of("sensors")
    X, _ = make_rows(400, classes=4, minority=0.3, seed=1)
    for given in (json.dumps(X[7].tolist()), ", ".join(map(str, X[7].tolist()))):
        opened.decide(given)
        said = model.predictions(X[[7]])
        assert opened.verdict() == str(said.labels[0])
        rows = opened.tab.locator("#answer table").first.locator("tbody tr").all()
        values = [row.locator("td").last.inner_text().replace("\u2212", "-") for row in rows]
        np.testing.assert_allclose(np.array(values, float), said.decision_values[0], atol=6e-4)
    opened.decide("1, 2, many")
    assert "not all numbers" in opened.tab.inner_text("#answer [role=alert]")


def test_an_error_of_the_service_is_shown_as_its_sentence(visit):
    opened = visit("incidents")
    opened.decide("   ")
    assert "give a text of at most" in opened.tab.inner_text("#answer [role=alert]")


def test_an_answer_that_is_outdated_is_dropped(visit):
    opened, held = visit("incidents"), []

    def hold_the_first(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    opened.tab.route("**/explain", hold_the_first)
    with opened.tab.expect_request("**/explain"):
        opened.decide("smoke flames burning")
    opened.decide("pump valve quiet")
    assert opened.verdict() == "calm"
    held[0].fulfill(json={"explanations": [], "error": "too late"})
    opened.tab.wait_for_timeout(50)  # nothing is to happen
    assert opened.verdict() == "calm"
    assert opened.errors() == []


def test_a_busy_service_is_asked_again_when_it_said(visit):
    opened, waits = visit("incidents"), []

    def busy_once(route):
        if waits:
            route.continue_()
        else:
            waits.append(route.fulfill(status=503, headers={"Retry-After": "1"}, json={}))

    opened.tab.route("**/explain", busy_once)
    opened.decide("smoke flames burning")
    opened.tab.get_by_text("Asking again in 1 s").wait_for()
    assert opened.verdict() == "fire"
    assert opened.tab.inner_text("#busy") == ""


def test_the_token_is_asked_for_and_kept_in_the_page_only(visit):
    opened = visit("incidents", settings={"token": TOKEN})
    assert opened.tab.inner_text("#gate-note") == "This service asks for a token."
    opened.tab.fill("#token", "guess")
    opened.tab.keyboard.press("Enter")
    opened.tab.get_by_text("This token is not the right one.").wait_for()
    opened.tab.fill("#token", TOKEN)
    opened.tab.keyboard.press("Enter")
    opened.tab.wait_for_selector("#one:not([hidden])")
    opened.decide("smoke flames burning")
    assert opened.verdict() == "fire"
    stored = "JSON.stringify([localStorage.length, sessionStorage.length, document.cookie])"
    assert opened.tab.evaluate(stored) == '[0,0,""]'


# --------------------------------------------------------------------------- another decision


def test_moving_the_threshold_flips_the_decision_at_the_score(visit, model_of, services):
    opened, text = visit("incidents"), "smoke pump checked today burning oil"
    score = float(model_of("incidents").predictions([text]).scores[0])
    opened.decide(text)
    before = opened.verdict()
    for threshold, label in ((score + 0.02, "calm"), (score - 0.02, "fire")):
        opened.slide(threshold)
        opened.tab.get_by_text(f"the line at {shown(round(threshold, 2))}").wait_for()
        assert opened.verdict() == label
        opened.moved()
        assert opened.verdict() == label
    assert "stated, not chosen" in opened.tab.inner_text("#moved")
    opened.tab.click("#trial [type=reset]")
    opened.tab.wait_for_selector("#figures th:nth-child(3)", state="detached")
    assert opened.verdict() == before
    said = ask_plainly(services("incidents"), "predict", {"rows": [text]})["predictions"][0]
    assert said["label"] == before, "what others are answered has not changed"


@pytest.mark.parametrize(
    ("objective", "prior"), [("recall>=0.9", None), ("f1", 0.3), ("", 0.02)], ids=str
)
def test_an_objective_and_a_prior_give_what_the_library_gives(visit, model_of, objective, prior):
    opened, model, text = visit("incidents"), model_of("incidents"), "smoke pump checked burning"
    opened.decide(text)
    opened.verdict()
    served = model.report_["fire"].sensitivity
    if prior is not None:
        model.set_prior(prior)
        opened.tab.fill("#shares input", str(100 * prior))
    if objective:
        model.set_objective(objective)
        opened.tab.fill("#objective", objective)
    opened.tab.click("#trial button.main")
    figures, of = opened.moved(), model.report_["fire"]
    assert figures["“fire”: found"] == [near(served), near(of.sensitivity)]
    assert figures["“fire”: right when said"][1] == near(of.precision)
    assert figures["All: MCC"][1] == near(model.report_.mcc)
    assert model.threshold_basis_ in opened.tab.inner_text("#moved")
    said = model.predictions([text])
    assert opened.verdict() == said.labels[0]
    share = dict(zip(model.classes_, said.probabilities[0], strict=True))[said.labels[0]]
    assert f"Probability {100 * share:.1f} %" in opened.tab.inner_text(".says")


def test_of_many_classes_each_has_its_prior(visit, model_of):
    opened, model = visit("sensors"), model_of("sensors")
    opened.tab.fill("#objective", "accuracy")
    for name, share in (("1", 20), ("2", 30), ("3", 10)):
        opened.tab.fill(f"#shares input[name='{name}']", str(share))
    opened.tab.click("#trial button.main")
    model.set_prior({1: 0.2, 2: 0.3, 3: 0.1}).set_objective("accuracy")
    assert opened.moved()["“2”: found"][1] == near(model.report_[2].sensitivity)


def test_an_objective_that_is_not_known_is_refused_in_a_sentence(visit):
    opened = visit("incidents")
    opened.tab.fill("#objective", "the best")
    opened.tab.click("#trial button.main")
    assert "balanced, f1" in opened.tab.inner_text("#moved [role=alert]")


# ---------------------------------------------------------------------------------- many rows


def test_a_thousand_texts_are_decided_as_by_the_library_and_bad_rows_are_told(visit, model_of):
    opened, model = visit("incidents"), model_of("incidents")
    texts, _ = write_texts(1000, seed=3)
    texts[5] = texts[700] = " "
    texts[6] = 'he said "smoke",\r\nthen; burning'
    texts[7] = "=1+1"
    lines = [[f"id{k}", "x", text] for k, text in enumerate(texts)]
    lines[40] = ["id40", "smoke"]
    opened.upload(as_csv([["id", "kind", "remark"], *lines]))
    opened.tab.wait_for_selector("#go:not([hidden])")
    assert opened.tab.locator("#column option:checked").inner_text() == "remark"
    opened.run()
    good = [k for k in range(1000) if k not in (5, 700, 40)]
    said = model.predictions([texts[k] for k in good])
    fires = int((said.labels == "fire").sum())
    state = opened.tab.inner_text("#state")
    assert f"Of 1000 rows 997 are decided: {fires} are “fire”. 3 could not be." in state
    problems = opened.tab.locator("#found li").all_inner_texts()
    assert [one.split(":")[0] for one in problems] == ["Row 6", "Row 41", "Row 701"]
    chances = said.probabilities[:, model.classes_.tolist().index("fire")]
    order = np.lexsort((-chances, said.labels != "fire"))[:300]
    table = opened.tab.locator("#found tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert [int(row[0]) - 1 for row in table] == [good[k] for k in order]
    rows = read_csv(opened.download())
    assert rows[7]["remark"] == "'=1+1"
    assert [rows[k]["remark"] for k in good if k != 7] == [texts[k] for k in good if k != 7]
    assert [rows[k]["predicted_label"] for k in good] == said.labels.tolist()
    found = [float(rows[k]["probability_fire"]) for k in good]
    assert np.array_equal(found, chances)
    assert [k for k in range(1000) if rows[k]["problem"]] == [5, 40, 700]
    assert rows[5]["predicted_label"] == ""
    assert opened.errors() == []


def test_a_table_is_decided_by_the_names_of_its_columns(visit, model_of):
    opened, model = visit("payments"), model_of("payments")
    table, _ = write_table(200, seed=9)
    lines = [["since", "city", "extra", "online", "age", "amount"]]
    for since, city, online, age, amount in zip(
        *(table[name] for name in ("since", "city", "online", "age", "amount")), strict=True
    ):
        lines.append([since, city, "?", str(online).lower(), "NA" if age is None else age, amount])
    lines[12][5] = "many"
    opened.upload(b"\xef\xbb\xbf" + as_csv(lines, delimiter=";"))
    opened.run()
    assert "Row 12: “amount” is 'many'" in opened.tab.inner_text("#found")
    rows = read_csv(opened.download())
    good = [k for k in range(200) if k != 11]
    known = {name: [values[k] for k in good] for name, values in table.items()}
    said = model.predictions(pa.table(known))
    assert [rows[k]["predicted_label"] for k in good] == said.labels.tolist()
    fraud = [float(rows[k]["probability_fraud"]) for k in good]
    assert np.array_equal(fraud, said.probabilities[:, 1])


def test_a_file_that_is_dropped_is_sorted_by_the_rare_class_among_many(visit, model_of):
    opened, model = visit("sensors"), model_of("sensors")
    X = np.random.default_rng(0).normal(size=(300, 8))
    content = as_csv([[f"x{k}" for k in range(8)], *X.tolist()]).decode()
    dropped = opened.tab.evaluate_handle(
        """content => {
            const carried = new DataTransfer();
            carried.items.add(new File([content], "dropped.csv"));
            return carried;
        }""",
        content,
    )
    opened.tab.dispatch_event("body", "drop", {"dataTransfer": dropped})
    opened.tab.get_by_text("dropped.csv: 300 rows").wait_for()
    opened.run()
    said, rare = model.predictions(X), model.report_.positive
    chances = said.probabilities[:, rare]
    order = np.lexsort((-chances, said.labels != rare))
    assert (np.argsort(-chances) != order).any(), "some alarms are not the likeliest rows"
    first = opened.tab.locator("#found tbody th").all_inner_texts()
    assert [int(row) - 1 for row in first] == order.tolist()
    rows = read_csv(opened.download())
    assert [int(row["predicted_label"]) for row in rows] == said.labels.tolist()
    found = [[float(row[f"probability_{k}"]) for k in range(4)] for row in rows]
    assert np.array_equal(found, said.probabilities)


def test_the_rows_of_a_file_follow_the_decision_that_is_tried(visit, model_of):
    opened, model = visit("incidents"), model_of("incidents")
    texts, _ = write_texts(200, seed=4)
    opened.upload(as_csv([["text"], *([text] for text in texts)]))
    opened.run()
    before = model.predict(texts)
    after = model.set_objective("recall>=0.99").predict(texts)
    assert (before != after).any()
    opened.tab.fill("#objective", "recall>=0.99")
    opened.tab.click("#trial button.main")
    opened.moved()
    assert f"decided otherwise: {(before != after).sum()}" in opened.tab.inner_text("#moved")
    rows = read_csv(opened.download())
    assert [row["predicted_label"] for row in rows] == after.tolist()


def test_requests_keep_to_the_limits_of_the_service(visit):
    opened = visit("incidents", settings={"rows": 40, "body_bytes": 2000})
    sizes = []
    opened.tab.on("request", lambda request: sizes.append(request.post_data))
    texts, _ = write_texts(150, seed=5)
    texts[9] = "smoke " * 1000
    opened.upload(as_csv([["text"], *([text] for text in texts)]))
    opened.run()
    bodies = [body for body in sizes if body]
    assert max(len(body.encode()) for body in bodies) <= 2000
    assert max(len(json.loads(body)["rows"]) for body in bodies) <= 40
    assert "149 are decided" in opened.tab.inner_text("#state")
    assert "Row 10: It is larger" in opened.tab.inner_text("#found")


def test_a_run_can_be_stopped_and_keeps_what_it_has(visit):
    opened = visit("incidents", settings={"rows": 20})
    opened.upload(as_csv([["text"], *([f"smoke {k}"] for k in range(60))]))
    held = []

    def only_the_first(route):
        held.append(route)
        if len(held) == 1:
            route.continue_()

    opened.tab.route("**/predict", only_the_first)
    with opened.tab.expect_request(lambda request: "predict" in request.url and bool(held)):
        opened.tab.click("#go")
    opened.tab.click("#stop")
    opened.tab.get_by_text("Of 60 rows 20 are decided").wait_for()
    assert not opened.tab.is_visible("#stop")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"text\n", "no row below"),
        (b"", "no row below"),
        ("text\nfür\n".encode("latin-1"), "is not in UTF-8"),
        (b'text\n"open\nclosed never\n', "quotation mark"),
    ],
    ids=["only names", "empty", "latin-1", "quote"],
)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(visit, content, said):
    opened = visit("incidents")
    opened.upload(content)
    assert said in opened.tab.inner_text("#state [role=alert]")
    assert not opened.tab.is_visible("#go")


def test_a_table_without_a_column_is_refused_by_its_name(visit):
    opened = visit("payments")
    opened.upload(b"amount,age,city,online\n1,2,Rome,true\n")
    assert "no column “since”" in opened.tab.inner_text("#state [role=alert]")


@pytest.mark.parametrize("mark", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_files_are_read_as_python_reads_them(visit, mark, end):
    opened = visit("incidents")
    rows = [["a", f'quo"te{mark} and{end}line', ""], ["", "", '"'], ["é", "日本", f" x{mark}"]]
    opened.upload(as_csv([["x", "text", "y"], *rows], delimiter=mark, lineterminator=end))
    opened.tab.wait_for_selector("#go:not([hidden])")
    opened.run()
    found = read_csv(opened.download())
    assert [[row["x"], row["text"], row["y"]] for row in found] == rows


# ------------------------------------------------------------------------- for all of its users


def test_the_page_works_with_the_keyboard_alone(visit):
    opened = visit("incidents")
    keys = opened.tab.keyboard

    def tab_to(what):
        for _ in range(40):
            if opened.tab.evaluate("what => document.activeElement.matches(what)", what):
                ring = opened.tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert ring != "none", "what has the focus is seen"
                return
            keys.press("Tab")
        pytest.fail(f"the Tab key does not reach {what}")

    tab_to("#fields textarea")
    keys.type("smoke flames burning")
    keys.press("Control+Enter")
    assert opened.verdict() == "fire"
    tab_to("#explorer-slider")
    keys.press("End")
    opened.moved()
    assert opened.verdict() == "calm"
    tab_to("#trial [type=reset]")
    keys.press("Enter")
    opened.tab.wait_for_selector("#figures th:nth-child(3)", state="detached")
    assert opened.verdict() == "fire"
    tab_to("#file")
    opened.upload(b"text\nsmoke flames\npump oil\n")
    opened.tab.wait_for_selector("#go:not([hidden])")
    tab_to("#go")
    keys.press("Enter")
    opened.tab.get_by_text("Of 2 rows 2 are decided").wait_for()


def test_everything_that_can_be_filled_has_a_name(visit):
    for name in ("incidents", "payments", "sensors"):
        opened = visit(name)
        unnamed = opened.tab.locator("input, select, textarea, button, progress").evaluate_all(
            "all => all.filter(one => !(one.labels?.[0] ?? one).textContent.trim()"
            " && !one.ariaLabel).map(one => one.outerHTML)"
        )
        assert unnamed == []


@pytest.mark.parametrize("name", ["hostile texts", "hostile table"])
def test_hostile_texts_labels_and_columns_stay_text(visit, name):
    opened = visit(name)
    opened.decide(*([HOSTILE] if name == "hostile texts" else []))
    opened.verdict()
    opened.slide(0.5)
    opened.moved()
    if name == "hostile texts":
        opened.upload(as_csv([[HOSTILE], [f"burning {HOSTILE}"], [""], [HOSTILE]]), HOSTILE[:40])
    else:
        columns = opened.tab.locator("#fields bdi").all_inner_texts()
        row = [field.input_value() for field in opened.fields()]
        opened.upload(as_csv([columns, row, ["many", *row[1:]]]))
    opened.run()
    assert opened.tab.evaluate("typeof window.flag") == "undefined"
    assert opened.tab.locator("img, b[onclick], script:not(:only-of-type)").count() == 0
    assert opened.dialogs == []
    assert opened.errors() == []
    assert "</script><img" in opened.tab.inner_text("#found")
    assert all(url.startswith((opened.address, "blob:")) for url in opened.requests)


@pytest.mark.parametrize("width", [360, 768, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen_and_asks_nobody_else(visit, width, scheme):
    for name, given in (("incidents", ["smoke " + "x" * 300]), ("payments", []), ("sensors", None)):
        size = {"width": width, "height": 800}
        opened = visit(name, viewport=size, color_scheme=scheme)
        assert opened.overflow() == 0
        if given is not None:
            opened.decide(*given)
            opened.verdict()
        opened.tab.fill("#objective", "f1")
        opened.tab.click("#trial button.main")
        opened.moved()
        if name == "incidents":
            opened.upload(as_csv([["text"], ["y" * 400], ["smoke"], [" "]]))
            opened.run()
        assert opened.overflow() == 0
        assert opened.errors() == []
        assert all(url.startswith(opened.address) for url in opened.requests)


def test_words_can_be_read_on_what_is_behind_them(visit):
    for scheme in ("light", "dark"):
        opened = visit("incidents", color_scheme=scheme)
        opened.decide("smoke pump checked burning today")
        opened.verdict()
        opened.upload(b"text\nsmoke\n")
        opened.tab.wait_for_selector("#go:not([hidden])")
        pairs = opened.tab.evaluate(INKS)
        assert len(pairs) > 20
        bad = [
            (words, contrast(ink, ground))
            for words, size, ink, ground in pairs
            if contrast(ink, ground) < (3 if size >= 24 else 4.5)
        ]
        assert bad == []


# Of all visible texts: the words, their colour, and the colours behind them, outermost first.
INKS = """() => [...document.querySelectorAll("body *")].filter(
    (one) => one.checkVisibility() && [...one.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent.trim())
).map((one) => {
    const grounds = [], of = getComputedStyle(one);
    for (let behind = one; behind; behind = behind.parentElement) {
        grounds.unshift(getComputedStyle(behind).backgroundColor);
    }
    return [one.textContent.slice(0, 40), parseFloat(of.fontSize), of.color, grounds];
})"""


def rgba(colour):
    values = [float(one) for one in colour[colour.index("(") + 1 : -1].split(",")]
    return np.array(values[:3]), values[3] if len(values) > 3 else 1.0


def contrast(ink, grounds):
    """The ratio of the two by WCAG 2."""
    behind = np.full(3, 255.0)
    for one in grounds:
        colour, share = rgba(one)
        behind = share * colour + (1 - share) * behind
    lights = []
    for colour in (rgba(ink)[0], behind):
        parts = colour / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_without_a_program_the_page_says_so(browser, services):
    with visits(browser) as visit:
        opened = visit(services("incidents"), java_script_enabled=False)
        assert "needs JavaScript" in opened.tab.inner_text("main")
