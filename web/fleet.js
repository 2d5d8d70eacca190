// How the worlds and the server do.

import {h, heads, put} from "./dom.js";
import * as api from "./api.js";
import {bars, quantile} from "./chart.js";
import {bytes, count, ms} from "./format.js";
import {call} from "./panes.js";

export const title = "Fleet";

const every = 2000;

export async function open(root, params, app) {
  let before, now = await api.fleet();
  draw(root, now, before);
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      [before, now] = [now, await api.fleet()];
      draw(root, now, before);
    } catch (e) {
      app.trouble(e);
    }
  }, every);
  return {close: () => clearInterval(timer), keys: {}};
}

const sec = (x) => ms(x === undefined ? undefined : 1000 * x);
const named = (list, name) => list.find((c) => c.name === name)?.value ?? 0;

// merged adds histograms up.
function merged(list) {
  const out = {bounds: list[0]?.bounds ?? [], counts: (list[0]?.bounds ?? []).map(() => 0), count: 0, sum: 0};
  for (const m of list) {
    m.counts.forEach((c, i) => { out.counts[i] += c; });
    out.count += m.count;
    out.sum += m.sum;
  }
  return out;
}

const calls = (now, names) => merged(now.calls.filter((c) => names.includes(c.labels.call.toLowerCase()) && c.labels.kind === ""));

function draw(root, now, before) {
  const steps = calls(now, ["step"]), resets = calls(now, ["reset"]), scroll = scrollY;
  const seconds = before ? (Date.parse(now.at) - Date.parse(before.at)) / 1000 : 0;
  const rate = before && seconds > 0 ? (steps.count - calls(before, ["step"]).count) / seconds : undefined;
  const failed = now.calls.filter((c) => c.labels.kind !== ""), ended = ["succeeded", "failed", "truncated"].reduce((n, k) => n + named(now.episodes, k), 0);
  put(root, h("h1", {}, "Fleet"),
    h("div", {class: "tiles"},
      tile(`${now.worlds - now.free} of ${now.worlds}`, "worlds busy"), tile(rate === undefined ? "–" : rate.toFixed(1), "steps/s now"),
      tile(sec(quantile(steps, 0.5)), `step p50 · p99 ${sec(quantile(steps, 0.99))}`), tile(sec(quantile(resets, 0.5)), `reset p50 · p99 ${sec(quantile(resets, 0.99))}`),
      tile(count(named(now.episodes, "started")), `episodes · ${count(named(now.episodes, "succeeded"))} of ${count(ended)} ended with success`),
      tile(count(named(now.episodes, "void")), "void: faults of the infrastructure", named(now.episodes, "void") ? "bad" : ""),
      tile(bytes(named(now.gauges, "server_memory_bytes")), `server memory · ${named(now.gauges, "streams")} streams, ${named(now.gauges, "sockets")} sockets`)),
    h("div", {class: "charts"}, bars(steps, {title: `Steps, all surfaces (${count(steps.count)})`, format: sec}), bars(resets, {title: `Resets, the wait for a world included (${count(resets.count)})`, format: sec})),
    parts(now), h("h2", {}, "Slow paths"), slow(now.lately), failed.length > 0 && errors(failed), h("h2", {}, "Leases"), leases(now.leases));
  scrollTo(0, scroll);
}

const tile = (value, label, kind = "") => h("div", {class: "tile " + kind}, h("strong", {}, value), h("span", {}, label));

function parts(now) {
  const l = now.lately;
  if (!l.total.n) return null;
  const line = (name, q) => h("tr", {}, h("td", {}, name), [q.p50, q.p90, q.p99, q.max].map((v) => h("td", {class: "num"}, ms(v))), h("td", {}, h("meter", {min: 0, max: l.total.p50 || 1, value: q.p50, "aria-label": "share of the median step"})));
  return h("section", {}, h("h2", {}, `Where the last ${l.total.n} steps spent their time`), h("table", {class: "list narrow"},
    heads("Part", "#p50", "#p90", "#p99", "#Most", "Share"),
    h("tbody", {}, line("act and settle", l.act), line("observe", l.observe), line("judge", l.judge), line("whole step", l.total))),
  h("p", {class: "quiet"}, "Observing and judging happen at the same time."));
}

function slow(l) {
  if (!l.slowest.length) return h("p", {class: "empty"}, "No steps yet.");
  return h("table", {class: "list"}, heads("#Took", "#Act", "#Observe", "#Judge", "Action", "Page", ""),
    h("tbody", {}, l.slowest.map((t) => h("tr", {}, h("td", {class: "num"}, h("b", {}, ms(t.timing.total_ms))), [t.timing.act_ms, t.timing.observe_ms, t.timing.judge_ms].map((v) => h("td", {class: "num quiet"}, ms(v))),
      h("td", {}, call(t.action)), h("td", {class: "quiet"}, t.url), h("td", {}, h("a", {href: `#/episode/${encodeURIComponent(t.episode)}?step=${t.index}`}, "open"))))));
}

function errors(failed) {
  return h("section", {}, h("h2", {}, "Refused and failed calls"), h("table", {class: "list narrow"}, heads("Surface", "Call", "Kind", "#Times"),
    h("tbody", {}, failed.map((c) => h("tr", {}, h("td", {}, c.labels.surface), h("td", {}, c.labels.call), h("td", {class: ["internal", "world_lost"].includes(c.labels.kind) ? "bad-text" : ""}, c.labels.kind), h("td", {class: "num"}, count(c.count)))))));
}

function leases(list) {
  if (!list.length) return h("p", {class: "empty"}, "No episode is held.");
  const sorted = [...list].sort((a, b) => a.left_ms - b.left_ms);
  return h("table", {class: "list narrow"}, heads("Task", "Client", "State", "#Left", "#Lease", ""),
    h("tbody", {}, sorted.map((l) => h("tr", {}, h("td", {}, l.task), h("td", {class: "quiet"}, l.client ?? ""), h("td", {}, l.busy ? "in a call" : "waits for its caller"), h("td", {class: "num" + (l.left_ms < l.lease_ms / 4 ? " warn-text" : "")}, ms(l.left_ms)),
      h("td", {class: "num quiet"}, ms(l.lease_ms)), h("td", {}, h("a", {href: "#/episode/" + encodeURIComponent(l.episode)}, "open"))))));
}
