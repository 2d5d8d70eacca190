// What happened, in a sentence: the part of an episode that a reader wants first.

import {reward} from "./format.js";

/** turns are, for each row, the stages that began or ceased to hold with it. */
export function turns(film) {
  const before = new Map();
  return film.rows.map((row, i) => {
    const out = [];
    for (const st of row.stages ?? []) {
      if (i > 0 && (before.get(st.name) ?? false) !== st.holds) out.push({...st, since: row.index});
      before.set(st.name, st.holds);
    }
    return out;
  });
}

const list = (names) => names.map((n) => `“${n}”`).join(", ");

/** story tells how an episode went; detail is its last step's, if it is there yet. */
export function story(film, detail) {
  const rows = film.rows;
  if (!rows.length) return "Nothing was recorded.";
  const last = rows.at(-1), stages = last.stages ?? [], parts = [];
  const open = stages.filter((st) => !st.holds), held = stages.length - open.length;
  if (film.head.success) {
    parts.push(stages.length > 1 ? `All ${stages.length} stages hold.` : "Its stage holds.");
  } else if (stages.length) {
    parts.push(`${held} of ${stages.length} stages hold.`);
    if (open.length) parts.push(`Missing: ${list(open.map((st) => st.name))}${why(detail, open)}.`);
  }
  if (last.collateral?.length) parts.push(`Damage to ${list(last.collateral)}.`);
  parts.push(...trouble(rows));
  if (film.head.detail) parts.push(film.head.detail);
  return parts.join(" ");
}

function why(detail, open) {
  const judged = (detail?.verdict?.stages ?? []).find((st) => st.name === open[0].name);
  return judged?.diff ? ` (${judged.diff})` : "";
}

function trouble(rows) {
  const failed = rows.filter((r) => r.error).length;
  const struck = rows.reduce((n, r) => n + (r.perturbations?.length ?? 0), 0);
  const repeats = rows.filter((r, i) => i > 1 && r.action && r.action === rows[i - 1].action && r.error).length;
  const out = [];
  if (failed) out.push(`${failed} ${failed === 1 ? "action" : "actions"} failed${repeats ? `, ${repeats} of them repeated` : ""}.`);
  if (struck) out.push(`${struck} ${struck === 1 ? "perturbation" : "perturbations"} struck.`);
  return out;
}

/** parting is the first row at which two episodes differ, or -1. */
export function parting(a, b) {
  const n = Math.max(a.rows.length, b.rows.length);
  for (let i = 0; i < n; i++) {
    const x = a.rows[i], y = b.rows[i];
    if (!x || !y || x.action !== y.action || x.hash !== y.hash) return i;
  }
  return -1;
}

/** differs says in what two rows differ. */
export function differs(x, y) {
  if (!x || !y) return "one of them has ended";
  if (x.action !== y.action) return x.index === 0 ? "the start" : "the action";
  if (x.url !== y.url) return "the page";
  if (x.reward !== y.reward) return `the reward (${reward(x.reward)} and ${reward(y.reward)})`;
  return x.hash === y.hash ? "" : "what was seen or written";
}
