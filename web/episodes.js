// The recorded episodes.

import {h, heads, put} from "./dom.js";
import * as api from "./api.js";
import {ago, count, cut, ms, percent, reward} from "./format.js";
import {badge} from "./panes.js";

export const title = "Episodes";

const fields = ["q", "outcome", "task", "world", "profile", "client", "end"];
const size = 100;

export async function open(root, params, app) {
  const view = {app, root, query: {}, list: undefined, at: 0, from: 0, left: params.query.get("compare") ?? "", refresh: 0, asked: undefined};
  for (const f of fields) if (params.query.get(f)) view.query[f] = params.query.get(f);
  view.parts = {filter: h("form", {class: "filter", role: "search", onsubmit: (e) => e.preventDefault()}), sum: h("div", {class: "sum"}), rows: h("div", {class: "table-box"})};
  put(root, h("div", {class: "head-line"}, h("h1", {}, "Episodes"), view.parts.count = h("span", {class: "quiet"})), view.parts.filter, view.parts.sum, view.parts.rows);
  await load(view);
  drawFilter(view);
  const move = (by) => { view.at = Math.max(0, Math.min(view.list.episodes.length - 1, view.at + by)); drawRows(view); };
  const chosen = () => view.list.episodes[view.at];
  return {close() { view.asked?.abort(); }, keys: {
    j: ["Next row", () => move(1)], k: ["Row before", () => move(-1)],
    ArrowDown: ["Next row", () => move(1)], ArrowUp: ["Row before", () => move(-1)],
    Enter: ["Open it", () => chosen() && app.go("#/episode/" + encodeURIComponent(chosen().id))],
    c: ["Mark it; with a second one, compare both", () => chosen() && mark(view, chosen().id)],
    n: ["Older", () => page(view, size)], p: ["Newer", () => page(view, -size)],
    "/": ["Search", () => root.querySelector("input[name=q]").focus()],
    u: ["Read the folder again", () => load(view)],
  }};
}

function mark(view, id) {
  if (view.left && view.left !== id) {
    view.app.go(`#/compare/${encodeURIComponent(view.left)}/${encodeURIComponent(id)}`);
    return;
  }
  view.left = view.left === id ? "" : id;
  drawRows(view);
}

async function page(view, by) {
  if (view.from + by < 0 || view.from + by >= view.list.matching) return;
  view.from += by;
  view.at = 0;
  await load(view);
}

async function load(view) {
  view.asked?.abort();
  const mine = view.asked = new AbortController();
  try {
    view.list = await api.episodes({...view.query, from: view.from, limit: size}, mine.signal);
  } catch (e) {
    if (mine.signal.aborted) return;
    throw e;
  }
  view.at = Math.min(view.at, Math.max(0, view.list.episodes.length - 1));
  const query = new URLSearchParams(view.query);
  if (view.left) query.set("compare", view.left);
  view.app.replace("#/episodes" + (query.size ? "?" + query : ""));
  drawSum(view);
  drawRows(view);
}

function drawFilter(view) {
  const change = (name) => (e) => {
    if (e.target.value) view.query[name] = e.target.value;
    else delete view.query[name];
    view.from = 0;
    load(view).catch((err) => view.app.trouble(err));
  };
  const choice = (name, all, options) => options.length > 1 || view.query[name] ? h("label", {}, h("span", {class: "quiet"}, name),
    h("select", {name, onchange: change(name)}, h("option", {value: ""}, all), options.map(([value, text]) => h("option", {value, selected: view.query[name] === value}, text)))) : null;
  const named = (list) => list.map((v) => [v || "-", v ? v.replaceAll("_", " ") : "none"]);
  const l = view.list;
  put(view.parts.filter,
    h("label", {}, h("span", {class: "quiet"}, "search"), h("input", {type: "search", name: "q", value: view.query.q ?? "", placeholder: "words, seed or id  ( / )", oninput: change("q")})),
    choice("outcome", "all", [["success", "success"], ["failure", "failure"], ["void", "void"]]),
    choice("task", "all", named(l.tasks)), choice("world", "all", named(l.worlds)), choice("profile", "all", named(l.profiles)),
    choice("client", "all", named(l.clients)), choice("end", "all", named(l.ends)));
}

function drawSum(view) {
  const l = view.list, played = l.by_task.reduce((n, t) => n + t.episodes, 0), tasks = [...l.by_task].sort((a, b) => a.success / a.episodes - b.success / b.episodes);
  put(view.parts.count, `${count(l.matching)} of ${count(l.total)} recorded`);
  put(view.parts.sum,
    h("div", {class: "figures"},
      big(percent(l.success, played), `success (${count(l.success)} of ${count(played)})`), big(played ? reward(l.mean_reward) : "–", "mean reward"), big(played ? l.mean_steps.toFixed(1) : "–", "mean steps")),
    tasks.length > 1 && h("details", {class: "tasks"}, h("summary", {}, `By task (${tasks.length}), hardest first`),
      h("ul", {class: "bars"}, tasks.map((t) => h("li", {}, h("button", {type: "button", class: "plain", onclick: () => { view.query.task = t.task; view.from = 0; load(view).then(() => drawFilter(view)); }}, t.task),
        h("meter", {min: 0, max: 1, value: t.success / t.episodes, "aria-label": "success"}), h("span", {}, percent(t.success, t.episodes)), h("span", {class: "quiet"}, `${t.success} of ${t.episodes}, ${t.mean_steps.toFixed(1)} steps`))))));
}

const big = (value, label) => h("div", {class: "figure"}, h("strong", {}, value), h("span", {}, label));

function drawRows(view) {
  const l = view.list;
  if (!l.episodes.length) {
    put(view.parts.rows, h("p", {class: "empty big"}, l.total ? "No episode matches the filter." : "Nothing is recorded here yet."));
    return;
  }
  const line = (e, i) => h("tr", {class: (i === view.at ? "current" : "") + (e.id === view.left ? " marked" : ""), onclick: () => view.app.go("#/episode/" + encodeURIComponent(e.id))},
    h("td", {}, badge(e)),
    h("td", {class: "ask"}, h("a", {class: "ask", href: "#/episode/" + encodeURIComponent(e.id)}, cut(e.instruction || e.task, 110))),
    h("td", {class: "short"}, e.task), h("td", {class: "num"}, e.seed), h("td", {class: "num"}, reward(e.reward)), h("td", {class: "num"}, e.steps),
    h("td", {class: "quiet short"}, cut(e.profile ?? "", 24)), h("td", {class: "quiet short"}, cut(e.client ?? "", 24)),
    h("td", {class: "quiet num"}, e.ended ? ms(Date.parse(e.ended) - Date.parse(e.started)) : ""), h("td", {class: "quiet short"}, ago(e.started)),
    h("td", {}, h("button", {type: "button", class: "plain", "aria-pressed": String(e.id === view.left), onclick: (ev) => { ev.stopPropagation(); mark(view, e.id); }},
      e.id === view.left ? "marked" : view.left ? "with this" : "compare")));
  put(view.parts.rows, h("table", {class: "list"},
    heads("Outcome", "Instruction", "Task", "#Seed", "#Reward", "#Steps", "Profile", "Client", "#Took", "Began", ""),
    h("tbody", {}, l.episodes.map(line))),
  h("p", {class: "pager"},
    h("button", {type: "button", disabled: view.from === 0, onclick: () => page(view, -size)}, "Newer (p)"),
    h("span", {class: "quiet"}, ` ${view.from + 1} to ${view.from + l.episodes.length} of ${l.matching} `),
    h("button", {type: "button", disabled: view.from + size >= l.matching, onclick: () => page(view, size)}, "Older (n)")));
  view.parts.rows.querySelector("tr.current")?.scrollIntoView({block: "nearest"});
}
