// One episode, step by step.

import {h, put, say} from "./dom.js";
import * as api from "./api.js";
import * as panes from "./panes.js";
import {Player} from "./player.js";
import {timeline} from "./timeline.js";

export const title = "Episode";

export async function open(root, params, app) {
  const id = params.path[0];
  const player = new Player(await api.episode(id));
  const rows = player.film.rows.length;
  player.go(params.query.has("step") ? Number(params.query.get("step")) : Math.max(0, rows - 1));
  const view = {mode: app.recall("mode") ?? "", onlyNew: app.recall("onlyNew") === "1", follow: player.film.head.live, playing: 0, lastDetail: undefined, screens: 0};
  if (rows) view.lastDetail = await player.detail(rows - 1).catch(() => undefined);
  const draw = () => render(root, player, view, go);
  const go = async (index) => {
    player.go(index);
    view.follow = player.film.head.live && player.at === player.film.rows.length - 1;
    app.replace(`#/episode/${encodeURIComponent(id)}?step=${player.at}`);
    draw();
    const asked = player.at;
    await player.around(asked).catch((e) => app.trouble(e));
    if (asked === player.at) draw();
    if (player.row) say(`Step ${player.row.step}: ${player.row.action || "reset"}`);
  };
  await go(player.at);
  const close = player.film.head.live ? follow(player, view, go, draw) : () => {};
  return {close: () => { clearInterval(view.playing); close(); }, keys: keys(player, view, go, draw, app)};
}

// follow has the page keep up with an episode that runs.
function follow(player, view, go, draw) {
  const id = player.film.head.id;
  let busy = false;
  return api.events(async (now) => {
    const e = now.episodes.find((x) => x.id === id);
    if (busy || !e || (e.rows === player.film.rows.length && e.live === player.film.head.live && e.end === player.film.head.end)) return;
    busy = true;
    try {
      player.set(await api.episode(id));
      view.lastDetail = await player.detail(player.film.rows.length - 1);
      if (view.follow) await go(player.film.rows.length - 1);
      else draw();
    } finally {
      busy = false;
    }
  }, () => {});
}

function keys(player, view, go, draw, app) {
  const toggle = (mode) => () => { view.mode = view.mode === mode ? "" : mode; app.remember("mode", view.mode); draw(); };
  return {
    ArrowRight: ["Next step", () => go(player.at + 1)],
    ArrowLeft: ["Step before", () => go(player.at - 1)],
    ArrowDown: ["Next step where something happened", () => go(player.next(1))],
    ArrowUp: ["The one before where something happened", () => go(player.next(-1))],
    Home: ["First step", () => go(0)],
    End: ["Last step", () => go(player.film.rows.length - 1)],
    " ": ["Play, or stop", () => play(player, view, go)],
    x: ["Text, or picture", toggle("text")],
    d: ["Only what changed in the text", () => { view.onlyNew = !view.onlyNew; app.remember("onlyNew", view.onlyNew ? "1" : ""); draw(); }],
    c: ["Compare with another episode", () => app.go(`#/episodes?compare=${encodeURIComponent(player.film.head.id)}&task=${encodeURIComponent(player.film.head.task)}`)],
    s: ["Take a picture of a live page", () => look(player, view, draw, app)],
  };
}

function play(player, view, go) {
  if (view.playing) {
    clearInterval(view.playing);
    view.playing = 0;
    return;
  }
  if (player.at === player.film.rows.length - 1) go(0);
  view.playing = setInterval(() => {
    if (player.at < player.film.rows.length - 1) go(player.at + 1);
    else play(player, view, go);
  }, 700);
}

async function look(player, view, draw, app) {
  if (!player.film.head.live) return;
  try {
    await api.look(player.film.head.id);
    view.screens++;
    view.looked = player.film.rows.length - 1;
    draw();
  } catch (e) {
    app.trouble(e);
  }
}

function render(root, player, view, go) {
  const {film, row} = player;
  const detail = player.known(player.at), before = player.known(player.at - 1);
  const scroll = root.querySelector(".steps")?.scrollTop ?? 0;
  if (!row) {
    put(root, panes.verdict(film, undefined));
    return;
  }
  put(root, h("div", {class: "episode"},
    panes.verdict(film, view.lastDetail),
    timeline(film, player.turned, player.at, go),
    h("div", {class: "columns"},
      panes.stepList(film, player.turned, player.at, go),
      livePicture(film, view, player.at) ?? panes.page(film, row, detail, before, view.mode, view.onlyNew),
      h("div", {class: "side"},
        panes.judge(row, detail), panes.changes(detail), panes.friction(film, player.at), panes.timing(row, detail)))));
  const list = root.querySelector(".steps"), current = root.querySelector(".step.current");
  list.scrollTop = scroll;
  // Not scrollIntoView: it would move the whole page too.
  const {top, bottom} = current.getBoundingClientRect(), box = list.getBoundingClientRect();
  if (top < box.top) list.scrollTop -= box.top - top;
  if (bottom > box.bottom) list.scrollTop += bottom - box.bottom;
}

// livePicture is the page of a running episode that somebody took a look at.
function livePicture(film, view, at) {
  if (!film.head.live || view.looked !== at || view.mode === "text") return null;
  const row = film.rows[at];
  return h("section", {class: "page-pane"}, h("div", {class: "address"}, h("span", {class: "title"}, row.title), h("code", {}, row.url)),
    h("div", {class: "page-body"}, h("img", {class: "screen", src: api.lastScreen(film.head.id, at + "." + view.screens), alt: "The page now"})));
}
