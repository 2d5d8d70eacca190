// Routes, keys, theme and help.

import {h, put, say} from "./dom.js";
import * as api from "./api.js";
import {failure} from "./panes.js";
import * as live from "./live.js";
import * as episodes from "./episodes.js";
import * as episode from "./episode.js";
import * as compare from "./compare.js";
import * as training from "./training.js";
import * as fleet from "./fleet.js";

const pages = {live, episodes, episode, compare, training, fleet};
const links = [["live", "Live", "l"], ["episodes", "Episodes", "e"], ["training", "Training", "r"], ["fleet", "Fleet", "f"]];
const root = document.getElementById("main");

let current = {close() {}, keys: {}}, opened = 0;

const app = {
  go(address) { location.hash = address; },
  // replace changes the address without a new entry in the history, or a new page.
  replace(address) { history.replaceState(null, "", address); },
  recall(name) { try { return localStorage.getItem("pommel." + name) ?? undefined; } catch { return undefined; } },
  remember(name, value) { try { localStorage.setItem("pommel." + name, value); } catch { /* a browser that keeps nothing */ } },
  trouble(e) {
    put(document.querySelector(".toast") ?? document.body.appendChild(h("div", {class: "toast", role: "alert"})), e.message, e.hint && h("span", {class: "quiet"}, " " + e.hint));
    clearTimeout(app.toast);
    app.toast = setTimeout(() => document.querySelector(".toast")?.remove(), 6000);
  },
};

function where() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  return {name: pages[name] ? name : "", path: rest, query: new URLSearchParams(query ?? "")};
}

async function route() {
  const here = where(), mine = ++opened;
  if (!here.name) {
    app.replace(app.server?.live === false ? "#/episodes" : "#/live");
    return route();
  }
  current.close();
  current = {close() {}, keys: {}};
  root.setAttribute("aria-busy", "true");
  document.title = `${pages[here.name].title} · Pommel`;
  nav(here.name);
  let next;
  try {
    next = await pages[here.name].open(put(root), here, app);
  } catch (e) {
    if (mine === opened) {
      failure(root, e);
      root.setAttribute("aria-busy", "false");
    }
    if (!(e instanceof api.Trouble)) console.error(e);
    return;
  }
  if (mine !== opened) {
    next.close(); // the reader has gone on meanwhile
    return;
  }
  current = next;
  root.setAttribute("aria-busy", "false");
}

function nav(name) {
  const at = {episode: "episodes", compare: "episodes"}[name] ?? name;
  put(document.getElementById("nav"), links.map(([id, text, key]) => h("a", {href: "#/" + id, "aria-current": id === at ? "page" : undefined, title: `${text} (${key})`}, text)));
}

function theme(change) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let mode = app.recall("theme") ?? "";
  if (change) {
    mode = {"": dark ? "light" : "dark", light: dark ? "" : "dark", dark: dark ? "light" : ""}[mode];
    app.remember("theme", mode);
    say(`Theme: ${mode || "as the system"}`);
  }
  if (mode) document.documentElement.dataset.theme = mode;
  else delete document.documentElement.dataset.theme;
  document.getElementById("theme").textContent = (mode || (dark ? "dark" : "light")) === "dark" ? "☾" : "☀";
}

const names = {ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", " ": "Space"};

function help() {
  document.querySelector("dialog")?.close();
  const line = (key, text) => h("tr", {}, h("td", {}, h("kbd", {}, names[key] ?? key)), h("td", {}, text));
  const box = h("dialog", {class: "help", "aria-label": "Keys"},
    h("h2", {}, "Keys"),
    h("div", {class: "two"},
      h("table", {}, h("caption", {}, "Everywhere"), links.map(([, text, key]) => line(key, text)), line("t", "Light or dark"), line("?", "This help"), line("Escape", "Close, or leave a field")),
      Object.keys(current.keys).length > 0 && h("table", {}, h("caption", {}, "On this page"), Object.entries(current.keys).map(([key, [text]]) => line(key, text)))),
    h("form", {method: "dialog"}, h("button", {}, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

const typing = (el) => el.matches?.("input, select, textarea");

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  if (typing(e.target)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  // Keys of a control that has the focus stay its own.
  if (e.key === " " && e.target.matches?.("button, a, summary")) return;
  const [, f] = current.keys[e.key] ?? everywhere(e.key) ?? [];
  if (!f) return;
  e.preventDefault();
  f();
});

function everywhere(key) {
  const link = links.find(([, , k]) => k === key);
  if (link) return ["", () => app.go("#/" + link[0])];
  return {t: ["", () => theme(true)], "?": ["", help]}[key];
}

document.getElementById("theme").addEventListener("click", () => theme(true));
document.getElementById("help").addEventListener("click", help);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(false));
window.addEventListener("hashchange", route);

theme(false);
api.server().then((server) => {
  app.server = server;
  put(document.getElementById("about"), server.live ? h("span", {title: server.world_title}, `world ${server.world}, driver ${server.driver}`) : "records only", ` · ${server.version}`);
}).catch((e) => app.trouble(e)).finally(route);
