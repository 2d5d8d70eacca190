// The parts of an episode's page; the comparison uses them twice.

import {h, s, put} from "./dom.js";
import * as api from "./api.js";
import {compare} from "./diff.js";
import {bytes, cut, ms, outcome, reward, signed} from "./format.js";
import {story} from "./story.js";

/** badge is the outcome of an episode. */
export function badge(head) {
  const o = outcome(head);
  return h("span", {class: "badge " + o.name}, h("span", {"aria-hidden": "true"}, o.glyph + " "), o.word);
}

/** verdict is the head of an episode: what was asked, what came of it, and why. */
export function verdict(film, detail) {
  const e = film.head, o = outcome(e), last = film.rows.at(-1);
  const limit = e.limit ? ` of ${e.limit}` : "";
  return h("section", {class: "verdict " + o.name, "aria-label": "Outcome"},
    h("div", {class: "verdict-top"},
      badge(e),
      h("h1", {}, e.instruction || e.task),
      h("div", {class: "figures"},
        figure(reward(e.reward), "reward"),
        figure(e.steps + limit, "steps"),
        figure(last ? ms(last.virtual_ms) : "–", "page time"))),
    h("p", {class: "story"}, story(film, detail)),
    h("p", {class: "facts"},
      fact("task", e.task), fact("seed", e.seed), fact("split", e.split), fact("world", e.world),
      fact("profile", e.profile), fact("client", e.client), fact("driver", e.driver), fact("ended", e.end && !e.live ? e.end.replace("_", " ") : ""),
      fact("id", e.id)));
}

const figure = (value, label) => h("div", {class: "figure"}, h("strong", {}, value), h("span", {}, label));
const fact = (name, value) => value === "" || value === undefined ? null : h("span", {class: "fact"}, h("span", {class: "quiet"}, name + " "), String(value));

/** stageChips are the stages as they stand after a row. */
export function stageChips(stages) {
  return h("ul", {class: "chips"}, (stages ?? []).map((st) =>
    h("li", {class: "chip " + (st.holds ? "good" : "open"), title: `weight ${st.weight}`},
      h("span", {"aria-label": st.holds ? "holds:" : "does not hold:"}, st.holds ? "✓ " : "○ "), st.name)));
}

/** call writes an action so that its verb stands out. */
export function call(action) {
  if (!action) return h("code", {class: "call"}, h("b", {}, "reset"));
  const i = action.indexOf("(");
  return h("code", {class: "call", title: action}, h("b", {}, i < 0 ? action : action.slice(0, i)), i < 0 ? "" : action.slice(i));
}

/** stepList is the list of all steps. pick(i) is called with the one that is chosen. */
export function stepList(film, turned, at, pick) {
  const list = h("ol", {class: "steps", role: "listbox", "aria-label": "Steps", tabindex: "0"});
  const marks = new Map();
  for (const m of film.marks ?? []) marks.set(m.before, [...(marks.get(m.before) ?? []), m]);
  for (const row of film.rows) {
    for (const m of marks.get(row.index) ?? []) list.append(markLine(m));
    list.append(stepLine(row, turned[row.index] ?? [], row.index === at, pick));
  }
  for (const m of marks.get(film.rows.length) ?? []) list.append(markLine(m));
  return list;
}

function markLine(m) {
  return h("li", {class: "mark", role: "presentation"}, m.kind === "restore" ? `↶ put back to ${m.checkpoint} (step ${m.step})` : `⚑ checkpoint ${m.checkpoint}`);
}

function stepLine(row, turned, current, pick) {
  return h("li", {
    class: "step" + (current ? " current" : "") + (row.error ? " failed" : ""), role: "option",
    "aria-selected": String(current), "data-index": row.index, onclick: () => pick(row.index),
  },
  h("span", {class: "number"}, row.step),
  h("span", {class: "what"}, call(row.action),
    row.target && h("span", {class: "line quiet"}, row.target),
    row.error && h("span", {class: "line bad-text"}, `✗ ${row.error.kind}: ${cut(row.error.message ?? "", 140)}`),
    turned.map((st) => h("span", {class: "line " + (st.holds ? "good-text" : "bad-text")}, `${st.holds ? "✓" : "↓"} ${st.name}${st.holds ? "" : " no longer holds"}`)),
    row.perturbations?.length ? h("span", {class: "line warn-text"}, "⚡ " + [...new Set(row.perturbations.map((p) => p.kind))].join(", ")) : null,
    row.collateral?.length ? h("span", {class: "line bad-text"}, "⚠ damage to " + row.collateral.join(", ")) : null),
  h("span", {class: "earned" + (row.reward > 0 ? " good-text" : row.reward < 0 ? " bad-text" : "")}, row.reward ? signed(row.reward) : ""));
}

/** page is what the agent saw after a row: a picture, a sketch or the text. mode is "" (the best there is), screen or text. */
export function page(film, row, detail, before, mode, onlyNew) {
  const picture = row.screen && !film.head.live ? api.screen(film.head.id, row.screen) : "";
  const sketched = !picture && detail?.elements?.length > 0;
  const shows = mode || (picture || sketched ? "screen" : "text");
  const box = h("div", {class: "page-body"});
  if (shows === "screen" && picture) box.append(h("img", {class: "screen", src: picture, alt: `The page after step ${row.step}: ${row.title}`}));
  else if (shows === "screen" && sketched) box.append(sketch(detail), h("p", {class: "quiet note"}, "No picture was recorded: this is drawn from the elements."));
  else if (shows === "screen") box.append(h("p", {class: "empty"}, "No picture of this step. Press x for the text."));
  else box.append(observation(detail, before, onlyNew));
  return h("section", {class: "page-pane", "aria-label": "Page"},
    h("div", {class: "address"}, h("span", {class: "title"}, row.title || "(no title)"), h("code", {}, row.url)),
    row.error && h("p", {class: "alert bad"}, h("b", {}, "The action failed: "), `${row.error.kind}: ${row.error.message ?? ""}`),
    detail?.dialog && h("p", {class: "alert warn"}, h("b", {}, `${detail.dialog.type}: `), detail.dialog.message),
    detail?.messages?.length ? h("p", {class: "alert"}, h("b", {}, "The agent said: "), detail.messages.at(-1)) : null,
    box);
}

// sketch draws the boxes of the elements that were on the screen.
function sketch(detail) {
  const shown = detail.elements.filter((e) => e.in_viewport && e.box[2] > 0 && e.box[3] > 0);
  // How large the window was is not recorded: what is in it begins above its lower edge.
  const width = Math.max(320, ...shown.map((e) => Math.min(2560, e.box[0] + e.box[2])));
  const height = Math.max(240, ...shown.map((e) => e.box[1] + Math.min(e.box[3], 40)));
  const leaf = (e) => e.interactive || ["heading", "StaticText", "image", "img"].includes(e.role);
  return s("svg", {class: "sketch", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Sketch of the page"},
    shown.map((e) => {
      const [x, y, w, hgt] = e.box;
      const name = e.value || e.name || "";
      return s("g", {class: (e.interactive ? "hot " : "cold ") + (e.bid === detail.focused ? "focused" : "")},
        s("rect", {x, y, width: w, height: hgt, rx: 3}),
        leaf(e) && name && s("text", {x: x + 4, y: y + Math.min(hgt / 2, 18) + 5}, cut(name, Math.max(2, Math.floor(w / 7.5)))));
    }));
}

function observation(detail, before, onlyNew) {
  if (!detail) return h("p", {class: "empty"}, "…");
  if (detail.forgotten) return h("p", {class: "empty"}, "The server keeps the text of this step no longer.");
  const d = compare(before?.text, detail.text);
  const lines = onlyNew ? d.lines.filter((l) => l.fresh) : d.lines;
  return h("div", {class: "observation", tabindex: "0", role: "region", "aria-label": "Text that the agent saw"},
    onlyNew && d.gone.map((l) => h("div", {class: "gone"}, "− " + l)),
    lines.map((l) => h("div", {class: l.fresh ? "fresh" : ""}, (l.fresh ? "+ " : "  ") + l.line)),
    onlyNew && !lines.length && !d.gone.length && h("p", {class: "empty"}, "Nothing changed."));
}

/** judge is what the judge found, with its evidence. */
export function judge(row, detail) {
  const v = detail?.verdict, stages = v?.stages ?? row.stages ?? [];
  const first = stages.find((st) => !st.holds && !st.waiting?.length);
  return h("section", {class: "pane", "aria-label": "Reward"},
    h("h2", {}, "Reward ", h("span", {class: "quiet"}, `${signed(row.reward)} here, ${reward(row.total)} in all`)),
    h("div", {class: "stages"}, stages.map((st) => stage(st, st === first))),
    (v?.collateral ?? []).map(damage));
}

function stage(st, open) {
  const kept = st.holds && st.now === false;
  return h("details", {class: "stage " + (st.holds ? "good" : "open"), open},
    h("summary", {}, h("span", {class: "tick", "aria-label": st.holds ? "holds" : "does not hold"}, st.holds ? "✓" : "○"), h("span", {class: "name"}, st.name),
      h("span", {class: "quiet"}, ` ×${st.weight}${kept ? ", latched" : ""}${st.waiting?.length ? ", waits for " + st.waiting.join(", ") : ""}`)),
    st.diff && h("p", {class: "diff"}, st.diff),
    both(st.seen, st.expected) ?? [evidence("Seen", st.seen), evidence("Expected", st.expected)]);
}

// both puts a row that was seen and the one that was expected side by side.
function both(seen, expected) {
  if (!seen?.columns?.length || !expected?.columns?.length || (seen.rows?.length ?? 0) > 1 || (expected.rows?.length ?? 0) > 1) return null;
  const names = [...new Set([...expected.columns, ...seen.columns])];
  const of = (e, name) => e.rows?.length && e.columns.includes(name) ? e.rows[0][e.columns.indexOf(name)] : undefined;
  return h("div", {class: "evidence"}, h("table", {class: "rows"},
    h("thead", {}, h("tr", {}, h("td", {}), h("th", {scope: "col"}, seen.rows?.length ? "seen" : "seen: no row"), h("th", {scope: "col"}, expected.rows?.length ? "expected" : "expected: no row"))),
    h("tbody", {}, names.map((name) => {
      const was = of(seen, name), want = of(expected, name);
      return h("tr", {}, h("th", {scope: "row"}, name), was === undefined ? h("td", {}) : cell(was, want !== undefined && was !== want), want === undefined ? h("td", {}) : cell(want));
    }))));
}

function evidence(title, e) {
  if (!e) return null;
  if (!e.columns?.length) return e.text !== undefined ? h("p", {class: "evidence"}, h("span", {class: "quiet"}, title + ": "), h("code", {}, e.text || "(nothing)")) : null;
  const total = e.total ?? 0, rows = e.rows ?? [];
  if (!rows.length) return h("p", {class: "evidence"}, h("span", {class: "quiet"}, title + ": "), "no rows");
  return h("div", {class: "evidence"}, h("table", {class: "rows"},
    h("caption", {}, `${title}: ${total} ${total === 1 ? "row" : "rows"}`),
    h("thead", {}, h("tr", {}, e.columns.map((c) => h("th", {scope: "col"}, c)))),
    h("tbody", {}, rows.map((r) => h("tr", {}, r.map((v) => cell(v)))))),
  rows.length < total && h("p", {class: "quiet"}, `and ${total - rows.length} more`));
}

const cell = (v, wrong) => h("td", {class: wrong ? "wrong" : v === null ? "null" : ""}, v === null ? "NULL" : v);

function damage(d) {
  const rows = (sign, list) => (list ?? []).map((r) => h("code", {class: "block"}, sign + " " + r));
  return h("details", {class: "stage damage", open: true},
    h("summary", {}, h("span", {class: "tick"}, "⚠"), h("span", {class: "name"}, "damage: " + d.table), h("span", {class: "quiet"}, d.rows < 0 ? " truncated" : ` ${d.rows} rows`)),
    rows("−", d.gone), rows("+", d.new));
}

/** changes are the rows that a step has written. */
export function changes(detail) {
  const list = detail?.changes ?? [];
  return h("section", {class: "pane", "aria-label": "Rows written"},
    h("h2", {}, "Rows written ", h("span", {class: "quiet"}, list.length || "none")),
    list.slice(0, 50).map((c) => h("details", {class: "change", open: list.length < 4},
      h("summary", {}, h("b", {class: "op " + c.op}, {insert: "+", update: "~", delete: "−"}[c.op] ?? "×"), " " + c.table, h("span", {class: "quiet"}, " " + c.op)),
      h("table", {class: "rows"}, h("tbody", {}, cells(c).map(([k, was, is]) => h("tr", {}, h("th", {scope: "row"}, k), was !== undefined && h("td", {class: "was"}, was ?? "NULL"), is !== undefined && h("td", {}, is ?? "NULL"))))))),
    list.length > 50 && h("p", {class: "quiet"}, `and ${list.length - 50} more`));
}

function cells(c) {
  const names = [...new Set([...Object.keys(c.old ?? {}), ...Object.keys(c.new ?? {})])].sort();
  if (c.op === "update") return names.filter((k) => c.old?.[k] !== c.new?.[k]).map((k) => [k, c.old?.[k] ?? null, c.new?.[k] ?? null]);
  return names.map((k) => c.new ? [k, undefined, c.new[k]] : [k, c.old[k], undefined]);
}

/** friction is what has struck up to a row, on the page's clock. */
export function friction(film, at) {
  const all = film.rows.flatMap((r) => (r.perturbations ?? []).map((p) => ({...p, index: r.index})));
  if (!all.length) return null;
  return h("section", {class: "pane", "aria-label": "Perturbations"},
    h("h2", {}, "Perturbations ", h("span", {class: "quiet"}, film.head.profile)),
    h("ol", {class: "friction"}, all.map((p) => h("li", {class: p.index === at ? "current" : p.index > at ? "later" : ""},
      h("span", {class: "when"}, ms(p.virtual_ms)),
      h("span", {}, h("b", {}, p.kind), p.target ? h("code", {}, " " + cut(p.target, 80)) : null,
        h("span", {class: "quiet"}, numbers(p)), p.seen ? h("span", {class: "line quiet"}, "seen as: " + p.seen) : null)))));
}

const numbers = (p) => Object.entries({...p.numbers, ...p.texts}).map(([k, v]) => ` ${k} ${v}`).join(",");

/** timing is where a step's real time went. */
export function timing(row, detail) {
  const t = row.timing ?? {}, parts = [["act", t.act_ms], ["observe", t.observe_ms], ["judge", t.judge_ms], ["reset", t.reset_ms]].filter(([, v]) => v);
  const notes = [...(detail?.notes ?? []), ...(detail?.still_running ?? []).map((u) => "still in flight: " + u), row.capped && "slower in real time than a step waits for",
    detail && !detail.reproducible && detail.not_reproducible && "need not come out the same again: " + detail.not_reproducible].filter(Boolean);
  return h("section", {class: "pane", "aria-label": "Step"},
    h("h2", {}, "Step ", h("span", {class: "quiet"}, ms(t.total_ms) + " real time")),
    h("p", {class: "quiet"}, parts.map(([k, v]) => `${k} ${ms(v)}`).join(" · ")),
    notes.map((n) => h("p", {class: "note"}, n)),
    h("p", {class: "quiet hash", title: row.hash}, "chain ", h("code", {}, (row.hash ?? "").slice(0, 16)), detail ? ` · text ${bytes(detail.text?.length ?? 0)}` : ""));
}

/** failure shows an error in place of a page. */
export function failure(root, e) {
  put(root, h("div", {class: "empty big"}, h("p", {}, h("b", {}, e.message)), e.hint && h("p", {}, e.hint)));
}
