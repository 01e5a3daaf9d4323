"use strict";
(() => {
  const all = JSON.parse(document.getElementById("explorer-data").textContent);
  if (!all.length) return;
  const at = (id) => document.getElementById(id);
  const slider = at("explorer-slider");
  const chooser = at("explorer-class");
  const NONE = Number(slider.max); // no alarm at all
  const TOP = NONE - 1;
  let one = all[0];
  let index = one.own;

  const figure = (value) => (Number.isFinite(value) ? value.toFixed(3).replace("-", "\u2212") : "n/a");
  const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");
  const of100 = (share) => {
    if (!Number.isFinite(share)) return "n/a";
    const number = 100 * share;
    if (number > 0 && number < 0.05) return "fewer than 0.1";
    if (number >= 99.95 && number < 100) return "more than 99.9";
    const fine = (number > 0 && number < 1) || (number > 99 && number < 100);
    return number.toFixed(fine ? 1 : 0);
  };

  const ends = () => [one.cuts[one.cuts.length - 1], one.cuts[0]];

  // How many thresholds are at least as high as the slider: alarms start at the last of them.
  const indexAt = (position) => {
    if (position >= NONE) return 0;
    const [low, high] = ends();
    const value = position >= TOP ? high : low + ((high - low) * position) / TOP;
    let from = 0;
    let to = one.cuts.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (one.cuts[middle] >= value) from = middle + 1;
      else to = middle;
    }
    return Math.max(from, 1);
  };

  // At its own place the threshold is 0: the lowest alarm lies a little above it.
  const shiftAt = (place) => (place === one.own ? 0 : one.cuts[place - 1]);

  const positionOf = (place) => {
    if (place === 0) return NONE;
    const [low, high] = ends();
    const shift = Math.max(shiftAt(place), low);
    return high > low ? Math.round(((shift - low) / (high - low)) * TOP) : TOP;
  };

  const cells = (of) => {
    const tp = of.tp[index];
    const fp = of.fp[index];
    return { tp, fp, fn: of.tp.at(-1) - tp, tn: of.fp.at(-1) - fp };
  };

  const show = () => {
    const rows = cells(one.rows);
    const { tp, fp, fn, tn } = cells(one.weights || one.rows); // rates are by weight
    const spec = tn / (tn + fp);
    const sens = tp / (tp + fn);
    const precision = index ? tp / (tp + fp) : tp + fn ? 0 : NaN;
    const f1 = tp + fn ? (2 * tp) / (2 * tp + fp + fn) : NaN;
    const alarms = (1000 * (tp + fp)) / (tp + fp + fn + tn);
    const shift = index || index === one.own ? shiftAt(index) : NaN;
    const cut = Number.isNaN(shift) ? "above all rows" : `by ${shift > 0 ? "+" : ""}${figure(shift)}`;
    const chance =
      index && one.probability
        ? `; the alarm nearest to it has probability ${(100 * one.probability[index - 1]).toFixed(1)} %`
        : "";
    const words =
      `Of 100 rows that are “${one.name}”, ${of100(sens)} are found. ` +
      (index ? `Of 100 alarms, ${of100(precision)} are right.` : "There is no alarm.");
    const texts = {
      cut,
      words,
      probability: chance,
      name: one.name,
      spec: figure(spec),
      sens: figure(sens),
      precision: figure(precision),
      f1: figure(f1),
      g_mean: figure(Math.sqrt(spec * sens)),
      alarms: alarms.toFixed(1),
      tp: count(rows.tp),
      fp: count(rows.fp),
      fn: count(rows.fn),
      tn: count(rows.tn),
    };
    for (const [id, text] of Object.entries(texts)) at(`x-${id}`).textContent = text;
    at("x-own").hidden = index !== one.own;
    slider.setAttribute("aria-valuetext", `threshold shifted ${cut}. ${words}`);
  };

  const reset = () => {
    index = one.own;
    slider.value = positionOf(index);
    at("explorer-mark").style.setProperty("--at", positionOf(index) / NONE);
    show();
  };

  slider.addEventListener("input", () => {
    index = indexAt(Number(slider.value));
    show();
  });
  at("explorer-reset").addEventListener("click", reset);
  if (chooser) {
    chooser.addEventListener("change", () => {
      one = all[Number(chooser.value)];
      reset();
    });
  }
  document.querySelector("#explorer .controls").hidden = false;
  reset();
})();
