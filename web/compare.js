// Two episodes side by side, at the same step.

import {h, put, say} from "./dom.js";
import * as api from "./api.js";
import * as panes from "./panes.js";
import {Player} from "./player.js";
import {differs, parting} from "./story.js";
import {timeline} from "./timeline.js";

export const title = "Compare";

export async function open(root, params, app) {
  const ids = params.path.slice(0, 2);
  const players = (await Promise.all(ids.map((id) => api.episode(id)))).map((film) => new Player(film));
  const part = parting(players[0].film, players[1].film);
  const view = {mode: "", onlyNew: false, at: 0, lasts: [], part};
  const length = Math.max(...players.map((p) => p.film.rows.length));
  view.lasts = await Promise.all(players.map((p) => p.detail(p.film.rows.length - 1).catch(() => undefined)));
  const draw = () => render(root, players, view, go);
  const go = async (index) => {
    view.at = Math.max(0, Math.min(length - 1, index));
    for (const p of players) p.go(view.at);
    app.replace(`#/compare/${ids.map(encodeURIComponent).join("/")}?step=${view.at}`);
    draw();
    const asked = view.at;
    await Promise.all(players.map((p) => p.around(p.at))).catch((e) => app.trouble(e));
    if (asked === view.at) draw();
    say(`Step ${view.at}`);
  };
  await go(params.query.has("step") ? Number(params.query.get("step")) : Math.max(0, part));
  return {close() {}, keys: {
    ArrowRight: ["Next step", () => go(view.at + 1)], ArrowLeft: ["Step before", () => go(view.at - 1)],
    Home: ["First step", () => go(0)], End: ["Last step", () => go(length - 1)],
    g: ["Where they part", () => part >= 0 && go(part)],
    x: ["Text, or picture", () => { view.mode = view.mode === "text" ? "" : "text"; draw(); }],
    d: ["Only what changed in the text", () => { view.onlyNew = !view.onlyNew; draw(); }],
    o: ["Change sides", () => app.go(`#/compare/${[...ids].reverse().map(encodeURIComponent).join("/")}?step=${view.at}`)],
  }};
}

function render(root, players, view, go) {
  const [a, b] = players, x = a.film.rows[view.at], y = b.film.rows[view.at], how = differs(x, y);
  put(root, h("div", {class: "compare"},
    h("p", {class: "parting"},
      view.part < 0 ? "Both episodes are the same, step by step." : [view.part > 0 ? `The same up to step ${view.part - 1}; they part at step ` : "They part at step ",
        h("button", {type: "button", class: "plain", onclick: () => go(view.part)}, view.part), ` in ${differs(a.film.rows[view.part], b.film.rows[view.part])}. `],
      h("b", {}, `Step ${view.at}`), how ? `: differs in ${how}.` : ": the same."),
    h("div", {class: "sides"}, players.map((p, i) => side(p, view, view.lasts[i], go, how)))));
}

function side(player, view, last, go, how) {
  const {film} = player, ended = view.at >= film.rows.length, row = player.row;
  return h("div", {class: "half"},
    panes.verdict(film, last),
    timeline(film, player.turned, Math.min(view.at, film.rows.length - 1), go),
    h("p", {class: "at" + (how ? " differs" : "")}, h("span", {class: "quiet"}, ended ? "ended at step " : "step "), row.step, " ", panes.call(row.action), row.target && h("span", {class: "quiet"}, " " + row.target), row.error && h("span", {class: "bad-text"}, " ✗ " + row.error.kind)),
    panes.stageChips(row.stages),
    panes.page(film, row, player.known(player.at), player.known(player.at - 1), view.mode, view.onlyNew),
    panes.judge(row, player.known(player.at)),
    panes.changes(player.known(player.at)),
    panes.friction(film, player.at));
}
