// How numbers, times and outcomes are written.

export const reward = (x) => (x < 0 ? "−" : "") + Math.abs(x).toFixed(2);
export const signed = (x) => (x > 0 ? "+" : x < 0 ? "−" : "±") + Math.abs(x).toFixed(2);
export const percent = (part, of) => (of ? Math.round((100 * part) / of) + " %" : "–");
export const count = (n) => n.toLocaleString("en");

export function ms(x) {
  if (x === undefined || x === null) return "–";
  if (x < 1) return x.toFixed(2) + " ms";
  if (x < 10) return x.toFixed(1) + " ms";
  if (x < 1000) return Math.round(x) + " ms";
  if (x < 60000) return (x / 1000).toFixed(x < 10000 ? 2 : 1) + " s";
  return Math.floor(x / 60000) + " min " + Math.round((x % 60000) / 1000) + " s";
}

export function bytes(n) {
  const units = ["B", "KB", "MB", "GB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return n.toFixed(i ? 1 : 0) + " " + units[i];
}

export function ago(at, now = Date.now()) {
  const sec = (now - Date.parse(at)) / 1000;
  if (sec < 60) return Math.max(0, Math.round(sec)) + " s ago";
  if (sec < 3600) return Math.round(sec / 60) + " min ago";
  if (sec < 86400) return Math.round(sec / 3600) + " h ago";
  return new Date(at).toISOString().slice(0, 10);
}

export const cut = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

/** outcome of an episode: a class, a glyph and a word, so that colour is never alone. */
export function outcome(head) {
  if (head.success) return {name: "good", glyph: "✓", word: "Success"};
  if (head.live && !head.end) return {name: "busy", glyph: "●", word: "Running"};
  if (head.end === "terminated") return {name: "bad", glyph: "✗", word: "Failed"};
  if (head.end === "truncated") return {name: "bad", glyph: "✗", word: "Out of steps"};
  if (head.end === "cut_off") return {name: "void", glyph: "○", word: "Unfinished record"};
  return {name: "void", glyph: "○", word: {closed: "Closed early", lease_expired: "Lease ran out", world_lost: "World lost"}[head.end] ?? head.end};
}
