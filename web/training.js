// Curves of trainings, one or several.

import {h, heads, put} from "./dom.js";
import * as api from "./api.js";
import {lines} from "./chart.js";
import {ago, count, ms, percent} from "./format.js";

export const title = "Training";

const every = 3000;

export async function open(root, params, app) {
  const {trainings} = await api.trainings();
  const asked = params.query.get("runs")?.split(",").filter((n) => trainings.some((t) => t.name === n));
  const view = {root, app, trainings, chosen: asked?.length ? asked : trainings.slice(0, 1).map((t) => t.name), runs: new Map(), at: 0};
  if (!trainings.length) {
    put(root, h("h1", {}, "Training"), h("div", {class: "empty big"}, h("p", {}, "No training is known here."), h("p", {class: "quiet"}, "Start the server with --training FOLDER, where pommel train --out has written.")));
    return {close() {}, keys: {}};
  }
  await draw(view);
  const move = (by) => { view.at = Math.max(0, Math.min(view.trainings.length - 1, view.at + by)); draw(view); };
  const toggle = () => choose(view, view.trainings[view.at].name);
  const timer = setInterval(() => refresh(view).catch((e) => app.trouble(e)), every);
  return {close: () => clearInterval(timer), keys: {j: ["Next training", () => move(1)], k: ["Training before", () => move(-1)], Enter: ["Show it, or not", toggle], u: ["Read the files again", () => { view.runs.clear(); draw(view); }]}};
}

// refresh reads again what has been written since: a training that runs writes after each update.
async function refresh(view) {
  if (document.hidden) return;
  const {trainings} = await api.trainings();
  const changed = trainings.filter((t) => t.when !== view.trainings.find((old) => old.name === t.name)?.when);
  if (!changed.length) return;
  view.trainings = trainings;
  for (const t of changed) view.runs.delete(t.name);
  await draw(view);
}

function choose(view, name) {
  view.chosen = view.chosen.includes(name) ? view.chosen.filter((n) => n !== name) : [...view.chosen, name];
  view.app.replace("#/training?runs=" + view.chosen.map(encodeURIComponent).join(","));
  return draw(view).catch((e) => view.app.trouble(e));
}

async function draw(view) {
  await Promise.all(view.chosen.filter((n) => !view.runs.has(n)).map(async (n) => view.runs.set(n, await api.training(n))));
  const runs = view.chosen.map((name) => ({name, ...view.runs.get(name)}));
  const series = (f) => runs.map((r) => ({name: r.name, points: (r.curve ?? []).map((p) => [p.steps, f(p)])}));
  const share = (v) => Math.round(100 * v) + " %";
  put(view.root, h("h1", {}, "Training"),
    table(view),
    runs.length > 0 && h("div", {class: "charts"},
      lines(series((p) => p.smooth), {title: "Success of late, mean over the tasks", x: "step", low: 0, high: 1, format: share}),
      lines(series((p) => p.reward), {title: "Mean reward of a batch", x: "step", low: 0}),
      lines(series((p) => p.length), {title: "Steps of an episode", x: "step", low: 0}),
      lines(series((p) => p.norm), {title: "Norm of the gradient", x: "step", low: 0})),
    runs.map(byTask));
}

function table(view) {
  return h("table", {class: "list"}, heads("Shown", "Training", "World", "Profile", "#Seed", "#Steps", "#Episodes", "#Took", "#Before", "#After", "When"),
    h("tbody", {}, view.trainings.map((t, i) => h("tr", {class: i === view.at ? "current" : "", onclick: () => choose(view, t.name)},
      h("td", {}, h("input", {type: "checkbox", checked: view.chosen.includes(t.name), "aria-label": "Show " + t.name, onclick: (e) => e.stopPropagation(), onchange: () => choose(view, t.name)})),
      h("td", {}, t.name), h("td", {}, t.world), h("td", {class: "quiet"}, t.profile), h("td", {class: "num"}, t.seed), h("td", {class: "num"}, count(t.steps)), h("td", {class: "num"}, count(t.episodes)),
      h("td", {class: "num quiet"}, ms(1000 * t.seconds)), h("td", {class: "num"}, t.evaluation_start ? percent(t.success_start, 1) : "–"), h("td", {class: "num"}, t.evaluation_end ? percent(t.success_end, 1) : "–"), h("td", {class: "quiet"}, ago(t.when))))));
}

function byTask(run) {
  const tasks = run.by_task ?? [];
  return h("section", {}, h("h2", {}, `Tasks of ${run.name}`), h("table", {class: "list"},
    heads("Task", "Difficulty", "#Episodes", "#Hints", "#In training", "#Of late", "#Before", "#After"),
    h("tbody", {}, tasks.map((t) => h("tr", {}, h("td", {}, t.task), h("td", {class: "quiet"}, t.difficulty), h("td", {class: "num"}, t.episodes), h("td", {class: "num"}, t.hints), h("td", {class: "num"}, percent(t.success, t.episodes)),
      h("td", {class: "num"}, percent(t.recent, 1)), h("td", {class: "num"}, run.evaluation_start ? percent(t.success_start, 1) : "–"),
      h("td", {class: "num"}, run.evaluation_end ? [h("meter", {min: 0, max: 1, value: t.success_end, "aria-hidden": "true"}), " ", percent(t.success_end, 1)] : "–"))))));
}
