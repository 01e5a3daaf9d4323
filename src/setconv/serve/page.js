"use strict";
(() => {
  const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const MISSING = /^(|na|n\/a|nan|null|\?)$/i;
  const SWITCH = { true: true, 1: true, false: false, 0: false };
  const ON = { out_of_fold: "training rows that were left out", validation: "validation rows", none: "none" };
  const AT_ONCE = 256; // rows of a request, so that progress is seen
  const SHOWN = 300; // rows of a table
  const REACH = 12; // of the slider and the scale, either way
  let model, two, names; // what the service says of its model, and its classes as keys
  let one = null; // the row that was asked about, with what was said of it
  let trial = null; // what is stated here instead of the service's own decision,
  let rule = null; // and what that decides by
  let sheet = null; // the file: its columns, its records, and what was said of each

  const at = (id) => document.getElementById(id);
  // What comes from others becomes text nodes: nothing here reads HTML.
  const make = (kind, inside = [], given = {}) => {
    const [tag, ...classes] = kind.split(".");
    const made = Object.assign(document.createElement(tag), { className: classes.join(" "), ...given });
    made.append(...[inside].flat(3));
    return made;
  };
  const nameOf = (label) => (typeof label === "boolean" ? (label ? "True" : "False") : String(label));
  const bdi = (label) => make("bdi", nameOf(label));
  const quoted = (label) => ["“", bdi(label), "”"];
  const figure = (value) => (Number.isFinite(value) ? value.toFixed(3).replace("-", "\u2212") : "n/a");
  const bytes = (text) => new TextEncoder().encode(text).length;
  const signed = (value) => (value > 0 ? "+" : "") + figure(value);
  const perCent = (share) => `${(100 * share).toFixed(1)} %`;
  const bar = (share, words) => {
    const filled = make("span", "", { style: `width: ${100 * Math.abs(share)}%` });
    return [make(share < 0 ? "span.weight.minus" : "span.weight", filled), make("span.number", words)];
  };
  const table = (kind, caption, heads, rows) => {
    const line = ([first, ...rest]) => [make("th", first, { scope: "row" }), rest.map((of) => make("td", of))];
    const head = make("tr", heads.map((name) => make("th", name, { scope: "col" })));
    const body = make("tbody", rows.map((cells) => make("tr", line(cells))));
    const whole = make(`table.${kind}`, [make("caption", caption), make("thead", head), body]);
    return make("div.scroll", whole, { tabIndex: 0, role: "region", ariaLabel: caption });
  };

  // ---- Asking the service

  const tries = {};
  let token = "", gate = null;
  // Of several tries at one thing only the newest may speak: the others are dropped.
  const attempt = async (what, place, work) => {
    tries[what]?.abort();
    const { signal } = (tries[what] = new AbortController());
    at(place).ariaBusy = "true";
    await work(signal).catch((error) => {
      if (!signal.aborted) at(place).replaceChildren(make("p.caution", error.message, { role: "alert" }));
    });
    if (!signal.aborted) at(place).ariaBusy = "false";
  };
  const wait = (seconds, signal) => new Promise((resolve) => {
    setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", resolve);
  });
  const askToken = () => (gate ??= new Promise((resolve) => {
    at("gate-note").textContent = token ? "This token is not the right one." : "This service asks for a token.";
    at("gate").onclose = () => resolve([token, gate] = [at("token").value.trim(), null]);
    at("gate").showModal();
  }));
  const call = async (path, body, signal) => {
    for (let left = 20; ; left -= 1) {
      signal.throwIfAborted();
      const used = token;
      const headers = { "Content-Type": "application/json", ...(used && { Authorization: `Bearer ${used}` }) };
      const given = body ? { method: "POST", body: JSON.stringify(body) } : {};
      const reply = await fetch(path, { ...given, headers, signal, cache: "no-store" }).catch(() => null);
      const said = await reply?.json().catch(() => ({}));
      signal.throwIfAborted();
      if (!reply) throw new Error("The service cannot be reached. Is it running?");
      if (reply.ok) return said;
      // What number a row had in a request says nothing to the reader.
      const words = (said.error ?? `The service answered with an error, ${reply.status}.`)
        .replace(/^rows\[\d+\]\['(.*?)'\]/, "“$1”").replace(/^rows\[\d+\]/, "It").replace(/ in row \d+/, "");
      if (left && (reply.status === 429 || reply.status === 503)) {
        const seconds = Number(reply.headers.get("Retry-After")) || 1;
        at("busy").textContent = `The service is busy. Asking again in ${seconds} s …`;
        await wait(seconds, signal);
        at("busy").textContent = "";
      } else if (reply.status !== 401) {
        throw Object.assign(new Error(words), { status: reply.status, row: said.row });
      } else if (used === token) await askToken();
    }
  };
  // What a row is taken for: by what is tried here, if anything is.
  const decide = (said) => {
    const cut = rule?.threshold ?? null;
    if (cut === null) return said.label;
    if (two) return model.classes[said.score > cut ? 1 : 0];
    const values = names.map((name, k) => said.score[name] - cut[k]);
    return model.classes[values.indexOf(Math.max(...values))];
  };

  // ---- One row

  const numbersOf = (text) => {
    const parts = text.replace(/^\s*\[|\]\s*$/g, "").split(/[\s,;]+/).filter(Boolean);
    if (parts.length && parts.every((part) => NUMBER.test(part))) return parts.map(Number);
    throw new Error("These are not all numbers. Give them with commas between, such as 0.5, 1, -2e3.");
  };
  const typed = (column, text) => {
    const bare = text.trim();
    if (column.kind === "category") return text || null;
    if (MISSING.test(bare)) return null;
    if (column.kind === "vector") return numbersOf(bare);
    if (column.kind === "boolean") return SWITCH[bare.toLowerCase()] ?? bare;
    return column.kind !== "date" && NUMBER.test(bare) ? Number(bare) : bare;
  };
  const fieldOf = (column) => {
    const known = { boolean: ["True", "False"], category: column.categories?.concat("(another)") }[column.kind];
    const required = !column.may_be_missing, placeholder = required ? "" : "missing";
    const options = [...(known ?? []), ...(required ? [] : [""])];
    const field = known ? make("select", options.map((value) => make("option", value || "(missing)", { value })))
      : make("input", [], { type: column.kind, step: "any", required, placeholder });
    field.value = nameOf(column.usual ?? "").slice(0, column.kind === "date" ? 10 : undefined);
    return make("label", [bdi(column.name), field]);
  };
  // A row as the service takes it, of the texts in a form or a line.
  const rowOf = (texts) => {
    if (!model.columns) return model.takes === "texts" ? texts[0] : numbersOf(texts.join());
    return Object.fromEntries(model.columns.map((column, k) => [column.name, typed(column, texts[k])]));
  };
  const ask = () => attempt("ask", "answer", async (signal) => {
    const row = rowOf([...at("ask").elements].slice(0, -1).map((field) => field.value)); // but the button
    one = { row, ...(await call("explain", { rows: [row], top: 24 }, signal)).explanations[0] };
    showOne();
    if (trial) tryOut();
  });
  const showOne = () => {
    if (!one) return;
    const said = one.moved ?? one.prediction, label = decide(said), share = said.probabilities[nameOf(label)];
    const alarm = label === model.positive;
    const says = [make("small", rule ? ["As tried below. As served: ", quoted(one.prediction.label)] : "Decision"),
      make("strong", [alarm ? "▲ " : "", bdi(label)]), "Probability ", perCent(share)];
    const why = "A decision serves the objective, so it may differ from the largest probability: "
      + "a rare class is worth an alarm long before it is the likelier one.";
    at("answer").replaceChildren(make(alarm ? "p.says.alarm" : "p.says", says),
      two ? scaleOf(said) : classesOf(said, label),
      share < Math.max(...Object.values(said.probabilities)) ? make("p.note", why) : "",
      ...reasonsOf(), ...nearestOf());
  };
  const placeOf = (value) => 50 + 50 * Math.max(-1, Math.min(1, value / REACH));
  const scaleOf = (said) => {
    const cut = (rule ?? model).threshold, [from, to] = [placeOf(cut), placeOf(said.score)];
    const filled = `left: ${Math.min(from, to)}%; width: ${Math.abs(to - from)}%`;
    at("explorer-mark").hidden = false;
    at("explorer-mark").style.setProperty("--at", to / 100);
    return make("div", [make("div.range", [make("span", "", { style: filled }),
      make("i", "", { style: `left: ${to}%` }), make("b", "", { style: `left: ${from}%` })]),
    make("p.note", [`Its score, ${figure(said.score)}, is ${said.score > cut ? "above" : "not above"} the threshold,`,
      ` the line at ${figure(cut)}. Above it is `, quoted(model.classes[1]), "."])]);
  };
  const classesOf = (said, label) => table("weights", "The largest score over its threshold decides",
    ["Class", "Probability", "Over its threshold"], names.map((name, k) => [
      [bdi(name), nameOf(label) === name ? make("small.tag", "✓ decided") : ""],
      bar(said.probabilities[name], perCent(said.probabilities[name])),
      signed(rule?.threshold ? said.score[name] - rule.threshold[k] : said.decision[name])]));
  const reasonsOf = () => {
    const texts = model.takes === "texts", [what, how] = texts ? ["Word", "Each word was left out, and the text"]
      : ["Column", "Each column was set to its usual value, and the row"];
    const largest = Math.max(...one.contributions.map((of) => Math.abs(of.contribution)), 1e-9);
    const strong = one.contributions.filter((of) => Math.abs(of.contribution) >= 0.0005).slice(0, 8);
    const rows = strong.map((of) => [bdi(of.name), bar(of.contribution / largest, signed(of.contribution))]);
    return [make("h3", ["What spoke for ", quoted(one.class), ", or against it"]), texts ? marked(largest) : "",
      table("weights", `${how} scored again.`, [what, "Adds to the score"], rows)];
  };
  // A word that stands in a text more than once is marked by its mean. Long texts are cut into 200 pieces.
  const marked = (largest) => {
    const words = one.row.match(/\S+\s*/g) ?? [], size = Math.ceil(words.length / 200);
    const pieces = words.flatMap((_, k) => (k % size ? [] : [words.slice(k, k + size).join("").trimEnd()]));
    return make("blockquote", pieces.map((text) => {
      const all = one.contributions.filter((of) => of.name === text);
      const sum = all.reduce((total, of) => total + of.contribution, 0);
      const level = Math.round((3 * sum) / largest / (all.length || 1));
      return [level ? make(`mark.${level > 0 ? "for" : "against"}${Math.abs(level)}`, text) : text, " "];
    }), { dir: "auto" });
  };
  const nearestOf = () => {
    const items = (one.nearest ?? []).slice(0, 5).map((of) => {
      const values = Object.entries(of.values ?? {}).map(([name, value]) => `${name} ${value ?? "missing"}`);
      const text = of.text ?? values.join(" · "), short = text.slice(0, 300) + (text[300] ? " …" : "");
      return make("li", [short ? make("blockquote", short, { dir: "auto" }) : "",
        make("small", [bdi(of.label), ` · ${of.id ?? `row ${of.row}`} · similarity ${of.similarity.toFixed(2)}`])]);
    });
    return items.length ? [make("h3", "Most alike in training"), make("ol.rows", items)] : [];
  };

  // ---- Another decision

  const tryOut = () => attempt("try", "moved", async (signal) => {
    await wait(0.15, signal); // a slider has many values on its way
    const row = one;
    rule = await call("decision", row ? { ...trial, rows: [row.row] } : trial, signal);
    if (row) [row.moved] = rule.predictions;
    showOne();
    showMoved();
  });
  // A threshold, or else what the form states: an objective, by default the service's own.
  const state = (threshold) => {
    const shares = [...at("shares").querySelectorAll("input")].filter((field) => field.value);
    const given = shares.map((field) => [field.name, Number(field.value) / 100]);
    if (threshold !== undefined) at("objective").value = "";
    trial = threshold === undefined ? { objective: at("objective").value.trim() || model.objective } : { threshold };
    if (given.length) trial.prior = two ? given[0][1] : Object.fromEntries(given);
    tryOut();
  };
  const reset = () => attempt("try", "moved", async () => {
    trial = rule = null;
    if (one) one.moved = null;
    showOne();
    showMoved();
  });
  const showMoved = () => {
    const both = rule ? [model.report, rule.report] : [model.report];
    const changes = sheet?.said?.filter((said) => said.label !== undefined && decide(said) !== said.label).length;
    const row = (words, name, k) => [words, ...both.map((report) => {
      const of = k === undefined ? report : report?.per_class[k], bounds = of?.intervals?.[name];
      return [figure(of?.[name]), bounds ? make("small", bounds.map(figure).join(" to ")) : ""];
    })];
    const rows = names.flatMap((name, k) => [row([quoted(name), ": found"], "sensitivity", k),
      row([quoted(name), ": right when said"], "precision", k)]);
    rows.push(row("All: right", "accuracy"), row("All: MCC", "mcc"));
    at("figures").replaceChildren(table("numbers", `Shares with 95 % intervals, on ${ON[model.report_source]}`,
      ["Figure", "As served", "Tried here"].slice(0, 1 + both.length), rows));
    at("moved").replaceChildren(make("p", [rule ? "What is tried rests on: " : "As served, it rests on: ",
      (rule ?? model).threshold_basis, changes >= 0 ? `. Rows of the file decided otherwise: ${changes}` : ""]));
    if (two) at("explorer-slider").value = at("cut").value = (rule ?? model).threshold.toFixed(4);
    if (sheet?.ended) showSheet();
  };

  // ---- Many rows

  const parse = (text) => {
    const first = text.slice(0, 9999).replace(/"[^"]*"/g, "").split(/[\r\n]/, 1)[0];
    const [mark] = [",", ";", "\t"].sort((a, b) => first.split(b).length - first.split(a).length);
    const cell = new RegExp(`("[^"]*(?:""[^"]*)*"|(?!")[^${mark}\r\n]*)(${mark}|\r\n|\n|\r|$)`, "gy");
    const records = [];
    let record = [], end = 0;
    for (const { 0: whole, 1: value, 2: after, index } of text.matchAll(cell)) {
      record.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
      end = index + whole.length;
      if (after === mark) continue;
      if (record.length > 1 || record[0]) records.push(record);
      record = [];
    }
    if (end < text.length) throw new Error(`Row ${records.length} has a quotation mark too many or too few.`);
    return records;
  };
  const open = (file) => attempt("run", "state", async (signal) => {
    sheet = null;
    at("found").replaceChildren();
    ["go", "save", "stop", "progress", "columns"].forEach((id) => { at(id).hidden = true; });
    const text = await file.text();
    signal.throwIfAborted();
    if (text.includes("\ufffd")) throw new Error(`${file.name} is not in UTF-8. Save it as “CSV UTF-8”.`);
    const [header = [], ...records] = parse(text), known = (name) => header.includes(name);
    const lost = model.columns?.map((column) => column.name).filter((name) => !known(name)).join("”, “");
    if (!records.length) throw new Error(`${file.name} has no row below its line of names.`);
    if (lost) throw new Error(`${file.name} has no column “${lost}”. It has: ${header.join(", ")}.`);
    const length = (k) => records.slice(0, 50).reduce((sum, record) => sum + (record[k]?.length ?? 0), 0);
    at("column").replaceChildren(...header.map((name, value) => make("option", name, { value })));
    at("column").value = header.reduce((best, _, k) => (length(k) > length(best) ? k : best), 0);
    at("columns").hidden = model.takes !== "texts";
    at("go").hidden = false;
    sheet = { name: file.name, header, records };
    at("state").textContent = `${file.name}: ${records.length} rows, counted from 1 below the line of names.`;
  });
  const run = () => attempt("run", "state", async (signal) => {
    const { header, records } = sheet, most = Math.min(AT_ONCE, model.limits.rows), rows = [];
    const said = (sheet.said = Array.from(records, () => ({}))), all = header.map((_, k) => k);
    sheet.ended = false;
    sheet.places = model.columns?.map((column) => header.indexOf(column.name))
      ?? (model.takes === "texts" ? [Number(at("column").value)] : all);
    records.forEach((record, k) => {
      try {
        if (record.length !== header.length) throw new Error(`${record.length} fields, but ${header.length} names.`);
        const row = rowOf(sheet.places.map((place) => record[place])), size = bytes(JSON.stringify(row));
        if (size > model.limits.body_bytes - 99) throw new Error("It is larger than what the service takes at once.");
        rows.push({ row, k, size });
      } catch (error) {
        said[k] = { problem: error.message };
      }
    });
    [at("stop").hidden, at("progress").hidden, at("progress").max] = [false, false, records.length];
    try {
      while (rows.length) {
        let size = 99, to = 0;
        while (to < Math.min(most, rows.length) && (size += rows[to].size + 1) < model.limits.body_bytes) to += 1;
        try {
          const body = { rows: rows.slice(0, to).map((of) => of.row) };
          const { predictions } = await call("predict", body, signal);
          rows.splice(0, to).forEach(({ k }, place) => { said[k] = predictions[place]; });
        } catch (error) {
          if (![413, 422].includes(error.status)) throw error;
          // The row that is bad is left out, and the others are sent again.
          const bad = error.row === undefined ? rows.splice(0, to) : rows.splice(error.row, 1);
          bad.forEach(({ k }) => { said[k] = { problem: error.message }; });
        }
        at("progress").value = records.length - rows.length;
      }
    } finally {
      if (sheet?.said === said) {
        sheet.ended = true;
        showMoved();
      }
    }
  });
  const showSheet = () => {
    const { records, said, places } = sheet, share = (k) => said[k].probabilities[nameOf(model.positive)];
    const alarm = (k) => decide(said[k]) === model.positive, all = [...said.keys()];
    const done = all.filter((k) => said[k].label !== undefined), bad = all.filter((k) => said[k].problem);
    done.sort((a, b) => alarm(b) - alarm(a) || share(b) - share(a));
    at("stop").hidden = at("progress").hidden = true;
    [at("save").hidden, at("state").ariaBusy] = [false, "false"];
    at("state").replaceChildren(make("p", [`Of ${all.length} rows ${done.length} are decided: `,
      `${done.filter(alarm).length} are `, quoted(model.positive), `. ${bad.length} could not be.`,
      done.length > SHOWN ? ` The first ${SHOWN} are shown.` : "",
      trial?.prior ? " Probabilities of the file are as served, not for the prevalence that is tried." : ""]));
    const problems = bad.slice(0, SHOWN).map((k) => make("li", `Row ${k + 1}: ${said[k].problem}`));
    const rows = done.slice(0, SHOWN).map((k) => [k + 1, [alarm(k) ? "▲ " : "", bdi(decide(said[k]))],
      perCent(share(k)), bdi(places.slice(0, 8).map((place) => records[k][place]).join(" · ").slice(0, 160))]);
    const heads = ["Row", "Decision", ["Probability of ", quoted(model.positive)], "It reads"];
    at("found").replaceChildren(problems.length ? make("ul.problems", problems) : "",
      table("found", "Alarms first, then by probability", heads, rows));
  };
  const save = () => {
    const { name, header, records, said } = sheet;
    const safe = (text) => (/^[=+\-@\t\r]/.test(text) && !NUMBER.test(text) ? `'${text}` : text);
    const field = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const line = (cells) => `${cells.map((cell) => field(safe(String(cell ?? "")))).join()}\r\n`;
    const lines = records.map((record, k) => line([...header.map((_, place) => record[place]),
      said[k].label === undefined ? "" : nameOf(decide(said[k])),
      ...names.map((of) => said[k].probabilities?.[of]), said[k].problem]));
    const first = line([...header, "predicted_label", ...names.map((of) => `probability_${of}`), "problem"]);
    const href = URL.createObjectURL(new Blob([first, ...lines], { type: "text/csv" }));
    make("a", "", { href, download: `${name.replace(/\.\w+$/, "")}-decided.csv` }).click();
    wait(60).then(() => URL.revokeObjectURL(href));
  };

  // ---- The beginning

  const begin = async (signal) => {
    const said = (model = await call("model", null, signal)), texts = said.takes === "texts";
    [two, names] = [said.classes.length === 2, said.classes.map(nameOf)];
    document.title = at("name").textContent = said.name;
    const asked = two ? [said.positive] : said.classes.slice(0, 20);
    const whether = asked.flatMap((of, k) => [k ? ", " : "", ...quoted(of)]);
    at("lead").replaceChildren(`Says of each ${texts ? "text" : "row"} whether it is `, ...whether);
    at("above").append(...quoted(said.classes[1]));
    const area = make("textarea", [], { rows: 7, required: true, dir: "auto" });
    const what = texts ? "Text" : `${said.n_features} numbers, with commas between`;
    at("fields").append(...(said.columns?.map(fieldOf) ?? [make("label.wide", [what, area])]));
    const shares = two ? [nameOf(said.positive)] : names, number = { type: "number", min: 0, max: 100, step: "any" };
    at("shares").append(...shares.map((name) => make("label", [bdi(name), make("input", [], { ...number, name })])));
    at("explorer").hidden = !two || !said.can_move;
    [at("trial").hidden, at("fixed").hidden] = [!said.can_move, said.can_move];
    const facts = { Name: said.name, Version: said.version, Kind: said.kind, Notes: said.notes.join(" "),
      "Rows in training": said.classes.map((of, k) => `${nameOf(of)} ${said.class_counts[k]}`).join(", "),
      "Decides for": JSON.stringify(said.objective), "Made with": `setconv ${said.versions.setconv}` };
    at("facts").append(table("facts", "What is served here", ["What", "It is"], Object.entries(facts)));
    document.querySelectorAll("main > section, nav").forEach((part) => { part.hidden = false; });
    showMoved();
  };
  const on = (id, kind, act) => at(id).addEventListener(kind, act);
  const submits = (id, act) => on(id, "submit", (event) => (event.preventDefault(), act()));
  submits("ask", ask);
  submits("trial", () => state());
  submits("sheet", run);
  on("trial", "reset", reset);
  for (const [id, kind] of [["explorer-slider", "input"], ["cut", "change"]]) {
    on(id, kind, () => state(Number(at(id).value)));
  }
  on("ask", "keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) at("ask").requestSubmit(); });
  on("stop", "click", () => tries.run.abort());
  on("save", "click", save);
  on("file", "change", () => at("file").files[0] && open(at("file").files[0]));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    if (model && event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  attempt("begin", "lead", begin);
})();
