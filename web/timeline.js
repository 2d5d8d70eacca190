// The strip over an episode: one column a step, and below it the page's own time, on which
// perturbations strike.

import {s} from "./dom.js";
import {cut, ms, reward, signed} from "./format.js";

const height = 56, lane = 34, pad = 14;

/** timeline draws the strip. pick(i) is called with the step that is chosen. */
export function timeline(film, turned, at, pick) {
  const rows = film.rows, width = 1200, n = Math.max(1, rows.length);
  const x = (i) => pad + ((width - 2 * pad) * (i + 0.5)) / n, step = (width - 2 * pad) / n;
  const y = (p) => height - 8 - Math.max(0, Math.min(1, p)) * (height - 16);
  const timed = rows.some((r) => r.perturbations?.length);
  const total = height + (timed ? lane : 0);
  const curve = rows.map((r, i) => `${i ? "L" : "M"}${x(i) - step / 2},${y(r.potential)}h${step}`).join("");
  return s("svg", {class: "timeline", viewBox: `0 0 ${width} ${total}`, preserveAspectRatio: "none", role: "img",
    style: {height: total + "px"}, "aria-label": `${rows.length} steps; the curve is the share of the stages that hold`},
  curve && s("path", {class: "area", d: `${curve}V${height - 8}H${x(0) - step / 2}Z`}),
  curve && s("path", {class: "curve", d: curve}),
  rows.map((r, i) => cell(r, turned[i] ?? [], x(i), y(r.potential), step, i === at, () => pick(i))),
  timed && clock(rows, at, width));
}

function cell(row, turned, x, y, step, current, pick) {
  const kind = row.error ? "bad" : row.perturbations?.length ? "warn" : row.reward > 0 ? "good" : row.reward < 0 ? "bad" : "";
  return s("g", {class: "cell " + kind + (current ? " current" : ""), onclick: pick},
    s("title", {}, tip(row, turned)),
    s("rect", {class: "hit", x: x - step / 2, y: 0, width: step, height}),
    s("ellipse", {class: "dot", cx: x, cy: y, rx: Math.min(5, step / 2.5), ry: Math.min(5, step / 2.5)}),
    row.error && s("path", {class: "cross", d: `M${x - 4},6l8,8m0,-8l-8,8`}),
    row.changes > 0 && s("rect", {class: "wrote", x: x - 3, y: height - 6, width: 6, height: 5}));
}

function tip(row, turned) {
  return [`step ${row.step}: ${cut(row.action || "reset", 120)}`, row.error && `failed: ${row.error.kind}`, row.reward && `reward ${signed(row.reward)}, ${reward(row.total)} in all`,
    ...turned.map((t) => `${t.holds ? "holds" : "lost"}: ${t.name}`), ...(row.perturbations ?? []).map((p) => `struck: ${p.kind}`), row.changes && `${row.changes} rows written`].filter(Boolean).join("\n");
}

// clock is the page's time from left to right: a tick for each step, a bolt for each strike.
function clock(rows, at, width) {
  const end = Math.max(1, ...rows.map((r) => r.virtual_ms), ...rows.flatMap((r) => (r.perturbations ?? []).map((p) => p.virtual_ms)));
  const x = (t) => pad + ((width - 2 * pad) * t) / end, top = height + 6, base = height + 20;
  return s("g", {class: "clock"},
    s("path", {class: "axis", d: `M${pad},${base}H${width - pad}`}),
    rows.map((r, i) => s("path", {class: "tick" + (i === at ? " current" : ""), d: `M${x(r.virtual_ms)},${base - 5}v10`}, s("title", {}, `step ${r.step} at ${ms(r.virtual_ms)}`))),
    rows.flatMap((r) => (r.perturbations ?? []).map((p) => s("path", {class: "bolt", d: `M${x(p.virtual_ms)},${top - 2}l-4,7h4l-3,7`}, s("title", {}, `${p.kind} at ${ms(p.virtual_ms)}`)))));
}
