// Line charts and histograms, drawn as SVG.

import {h, s, put} from "./dom.js";

const width = 560, height = 220, left = 46, right = 12, top = 12, bottom = 30;

/** ticks are round numbers between two. */
export function ticks(low, high, n = 5) {
  const span = high - low || 1, raw = span / n, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((m) => m >= raw);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step / 1e6; v += step) out.push(Number(v.toPrecision(12)));
  return out;
}

/**
 * lines is a chart of series: {name, points: [[x, y]]}. options: title, x, y (names), low, high, format.
 * The pointer, or the arrow keys while it has the focus, read values off it.
 */
export function lines(series, o) {
  const all = series.flatMap((l) => l.points), xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  if (!all.length) return h("figure", {class: "chart"}, h("figcaption", {}, o.title), h("p", {class: "empty"}, "No points yet."));
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1), y0 = o.low ?? Math.min(...ys), most = Math.max(...ys), y1 = o.high ?? (most > y0 ? most : y0 + 1);
  const x = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right), y = (v) => height - bottom - ((v - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const fmt = o.format ?? ((v) => String(Number(v.toPrecision(3))));
  const reader = s("g", {class: "reader"}), legend = h("div", {class: "legend", "aria-live": "polite"});
  const svg = s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0", "aria-label": `${o.title}, ${series.map((l) => l.name).join(", ")}`},
    ticks(y0, y1).map((v) => [s("path", {class: "grid", d: `M${left},${y(v)}H${width - right}`}), s("text", {class: "axis-y", x: left - 6, y: y(v) + 4}, fmt(v))]),
    ticks(x0, x1).map((v) => s("text", {class: "axis-x", x: x(v), y: height - 10}, String(v))),
    series.map((l, i) => s("path", {class: `series c${i % 6}`, d: l.points.map((p, k) => `${k ? "L" : "M"}${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join("")})),
    reader);
  const grid = [...new Set(xs)].sort((a, b) => a - b);
  let at = grid.length - 1;
  const read = (i) => {
    at = Math.max(0, Math.min(grid.length - 1, i));
    const v = grid[at];
    put(reader, s("path", {class: "cursor", d: `M${x(v)},${top}V${height - bottom}`}), series.map((l, k) => { const p = nearest(l.points, v); return s("circle", {class: `c${k % 6}`, cx: x(p[0]), cy: y(p[1]), r: 3.5}); }));
    put(legend, h("span", {class: "quiet"}, `${o.x} ${v}`), series.map((l, k) => h("span", {class: "key"}, h("i", {class: `c${k % 6}`}), `${l.name} `, h("b", {}, fmt(nearest(l.points, v)[1])))));
  };
  svg.addEventListener("pointermove", (e) => {
    const box = svg.getBoundingClientRect(), v = x0 + ((((e.clientX - box.left) / box.width) * width - left) / (width - left - right)) * (x1 - x0);
    read(grid.reduce((best, g, i) => (Math.abs(g - v) < Math.abs(grid[best] - v) ? i : best), 0));
  });
  svg.addEventListener("keydown", (e) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    read(at + by);
  });
  read(at);
  return h("figure", {class: "chart"}, h("figcaption", {}, o.title), svg, legend);
}

function nearest(points, v) {
  return points.reduce((best, p) => (Math.abs(p[0] - v) < Math.abs(best[0] - v) ? p : best), points[0] ?? [0, 0]);
}

/** quantile of a histogram of Prometheus, in its unit. */
export function quantile(hist, q) {
  if (!hist.count) return undefined;
  const rank = q * hist.count;
  let below = 0, low = 0;
  for (let i = 0; i < hist.bounds.length; i++) {
    if (hist.counts[i] >= rank) return low + (hist.bounds[i] - low) * ((rank - below) / Math.max(1, hist.counts[i] - below));
    below = hist.counts[i];
    low = hist.bounds[i];
  }
  return hist.bounds.at(-1);
}

/** bars is a histogram with the bounds below. */
export function bars(hist, o) {
  const per = hist.counts.map((c, i) => c - (i ? hist.counts[i - 1] : 0));
  per.push(hist.count - (hist.counts.at(-1) ?? 0));
  let first = per.findIndex((n) => n > 0), last = per.findLastIndex((n) => n > 0);
  if (first < 0) return h("figure", {class: "chart"}, h("figcaption", {}, o.title), h("p", {class: "empty"}, "Nothing yet."));
  first = Math.max(0, first - 1);
  last = Math.min(per.length - 1, last + 1);
  const shown = per.slice(first, last + 1), most = Math.max(...shown), w = (width - left - right) / shown.length;
  const high = (n) => (n / most) * (height - top - bottom);
  const label = (i) => i < hist.bounds.length ? o.format(hist.bounds[i]) : "more";
  return h("figure", {class: "chart"}, h("figcaption", {}, o.title),
    s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${o.title}: ${hist.count} in all`},
      shown.map((n, i) => s("g", {}, s("title", {}, `up to ${label(first + i)}: ${n}`),
        s("rect", {class: "column", x: left + i * w + 1, y: height - bottom - high(n), width: Math.max(1, w - 2), height: high(n), rx: 2}),
        n > 0 && s("text", {class: "axis-x", x: left + (i + 0.5) * w, y: height - bottom - high(n) - 4 < 10 ? 10 : height - bottom - high(n) - 4}, n),
        s("text", {class: "axis-x", x: Math.min(width - 22, left + (i + 1) * w), y: height - 10}, label(first + i))))));
}
