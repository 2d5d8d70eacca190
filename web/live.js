// What runs now.

import {h, s, put} from "./dom.js";
import * as api from "./api.js";
import {ago, cut, ms, reward} from "./format.js";
import {badge, call, stageChips} from "./panes.js";

export const title = "Live";

export async function open(root, params, app) {
  const view = {now: await api.live(), at: 0, versions: new Map(), app, root};
  draw(view);
  const close = api.events((now) => { view.now = now; draw(view); }, (state) => {
    if (state === EventSource.CLOSED) app.trouble({message: "The server has ended the stream.", hint: "Load the page again once it is back."});
  });
  const chosen = () => view.now.episodes[view.at];
  const move = (by) => { view.at = Math.max(0, Math.min(view.now.episodes.length - 1, view.at + by)); draw(view); root.querySelector(".card.current")?.scrollIntoView({block: "nearest"}); };
  return {close, keys: {
    j: ["Next episode", () => move(1)],
    k: ["Episode before", () => move(-1)],
    Enter: ["Open it", () => chosen() && app.go("#/episode/" + encodeURIComponent(chosen().id))],
    s: ["Take a picture of its page", () => chosen() && look(view, chosen())],
  }};
}

async function look(view, e) {
  try {
    await api.look(e.id);
    view.versions.set(e.id, (view.versions.get(e.id) ?? 0) + 1);
    draw(view);
  } catch (err) {
    view.app.trouble(err);
  }
}

function draw(view) {
  const {now} = view, running = now.episodes.filter((e) => e.live), ended = now.episodes.filter((e) => !e.live);
  const focus = document.activeElement?.getAttribute("data-focus");
  put(view.root,
    h("div", {class: "head-line"}, h("h1", {}, "Live"),
      h("span", {class: "quiet"}, `${running.length} of ${now.worlds} worlds busy, ${now.free} ready`)),
    running.length ? h("ul", {class: "cards"}, running.map((e, i) => card(view, e, i)))
      : h("p", {class: "empty big"}, now.worlds ? "No episode runs. Those that callers start appear here." : "No worlds run in this process; recorded episodes are under Episodes."),
    ended.length > 0 && h("h2", {}, "Just ended"),
    ended.length > 0 && h("ul", {class: "ended"}, ended.map((e, i) => endedLine(view, e, running.length + i))));
  if (focus) view.root.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

function card(view, e, i) {
  const open = "#/episode/" + encodeURIComponent(e.id), left = e.lease_ms ? e.left_ms / e.lease_ms : 1;
  return h("li", {class: "card" + (i === view.at ? " current" : "")},
    h("div", {class: "thumb"}, picture(view, e)),
    h("div", {class: "card-body"},
      h("a", {class: "ask", href: open, "data-focus": "a" + e.id}, e.instruction || e.task),
      h("p", {class: "facts"}, `${e.task} · seed ${e.seed}${e.profile ? " · " + e.profile : ""}${e.client ? " · " + e.client : ""}`),
      h("p", {class: "now" + (e.doing ? " doing" : "")}, e.doing ? [h("span", {class: "pulse", "aria-hidden": "true"}), call(e.doing), h("span", {class: "quiet"}, " " + ms(e.doing_ms))]
        : e.last ? [call(e.last.action), e.last.target && h("span", {class: "quiet"}, " " + cut(e.last.target, 50)), e.last.error && h("span", {class: "bad-text"}, " ✗ " + e.last.error.kind)] : "starting"),
      h("p", {class: "quiet where"}, e.last ? `${cut(e.last.title, 40)} · ${cut(e.last.url, 60)}` : ""),
      stageChips(e.last?.stages),
      h("div", {class: "meters"},
        meter("reward", Math.max(0, Math.min(1, e.reward)), reward(e.reward), "good"),
        meter("steps", e.limit ? e.steps / e.limit : 0, e.steps + (e.limit ? " of " + e.limit : ""), "plain"),
        meter("lease", left, Math.round((e.left_ms ?? 0) / 1000) + " s", left < 0.25 ? "warn" : "plain"))));
}

function picture(view, e) {
  if (!e.screen) {
    return h("button", {type: "button", class: "look", "data-focus": "l" + e.id, onclick: () => look(view, e)}, "Take a picture", h("span", {class: "quiet"}, "between two steps; changes nothing"));
  }
  const version = `${e.screen.index}.${view.versions.get(e.id) ?? 0}`, behind = (e.last?.index ?? 0) - e.screen.index;
  return [h("img", {src: api.lastScreen(e.id, version), alt: `Page of ${e.task}`}),
    h("button", {type: "button", class: "again", "data-focus": "l" + e.id, title: "Take a picture (s)", onclick: () => look(view, e)}, behind > 0 ? `${behind} steps old ↻` : "↻")];
}

function meter(name, share, text, kind) {
  const w = Math.max(0, Math.min(1, share)) * 100;
  return h("div", {class: "meter"}, h("span", {class: "quiet"}, name),
    s("svg", {viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true"}, s("rect", {class: "track", width: 100, height: 4, rx: 2}), s("rect", {class: "fill " + kind, width: w, height: 4, rx: 2})),
    h("span", {}, text));
}

function endedLine(view, e, i) {
  return h("li", {class: i === view.at ? "current" : ""}, badge(e), h("a", {href: "#/episode/" + encodeURIComponent(e.id), "data-focus": "a" + e.id}, cut(e.instruction || e.task, 90)),
    h("span", {class: "quiet"}, `${e.task} · seed ${e.seed}`), h("span", {}, reward(e.reward)), h("span", {class: "quiet"}, `${e.steps} steps · ${e.ended ? ago(e.ended) : ""}`));
}
