// Where to press: a point at which the element itself is what a user would hit.

// place gives the offset of a document's viewport in the main frame's viewport and the
// scale of what it shows, through borders, padding and transforms of its iframes.
const place = (doc) => {
  let x = 0, y = 0, k = 1;
  const chain = [];
  for (let d = doc; d !== document;) {
    const host = d.defaultView && d.defaultView.frameElement;
    if (!host) return null;
    chain.unshift(host);
    d = host.ownerDocument;
  }
  for (const host of chain) {
    const r = host.getBoundingClientRect();
    const s = getComputedStyle(host);
    const own = host.offsetWidth ? r.width / host.offsetWidth : 1;
    x += k * (r.x + own * (host.clientLeft + parseFloat(s.paddingLeft)));
    y += k * (r.y + own * (host.clientTop + parseFloat(s.paddingTop)));
    k *= own;
  }
  return {x, y, k, chain};
};
P.place = place;

// deepest is the innermost element at a point of a document, through shadow trees.
const deepest = (doc, x, y) => {
  let el = doc.elementFromPoint(x, y);
  for (let root; el && (root = P.shadow(el));) {
    const inner = root.elementFromPoint(x, y);
    if (!inner || inner === el) break;
    el = inner;
  }
  return el;
};

// P.hit is the innermost element at a point of the main viewport, through frames.
P.hit = (x, y) => {
  let doc = document;
  for (;;) {
    const el = deepest(doc, x, y);
    const inner = el && (el.localName === 'iframe' || el.localName === 'frame') && el.contentDocument;
    if (!inner) return el;
    const p = place(inner), q = place(doc);
    x = (x * q.k + q.x - p.x) / p.k;
    y = (y * q.k + q.y - p.y) / p.k;
    doc = inner;
  }
};

const controls = 'a[href],button,label,summary,input,select,textarea,[role=button],[role=link],[role=checkbox],[role=radio],[role=switch],[role=tab],[role=menuitem],[role=option]';

// P.accepts says whether a press on hit is a press on el: on itself, on something in it,
// on its label, or on the control that it is a part of.
P.accepts = (hit, el) => {
  if (!hit) return false;
  if (P.within(hit, el)) return true;
  for (let n = hit; n; n = P.up(n)) if (n.localName === 'label' && n.control === el) return true;
  const whole = el.closest && el.closest(controls);
  return !!whole && whole !== el && P.within(hit, whole) && getComputedStyle(el).pointerEvents === 'none';
};

// spots are points to try, best first: the middles of the boxes that the element is
// made of (a wrapped link has several), then points nearer to their corners.
const spots = (el) => {
  const rects = [...el.getClientRects()].filter((r) => r.width > 0 && r.height > 0).sort((a, b) => b.width * b.height - a.width * a.height).slice(0, 4);
  const out = [];
  for (const [fx, fy] of [[0.5, 0.5], [0.2, 0.5], [0.8, 0.5], [0.5, 0.2], [0.5, 0.8], [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])
    for (const r of rects) out.push([r.x + r.width * fx, r.y + r.height * fy]);
  return out;
};

// aimAt looks for a point now, without scrolling: {x, y} or what stands in the way.
const aimAt = (el) => {
  const p = place(el.ownerDocument);
  if (!p) return {gone: true};
  let cover = null, outside = true;
  for (const [ex, ey] of spots(el)) {
    const x = p.x + p.k * ex, y = p.y + p.k * ey;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) continue;
    const hit = P.hit(x, y);
    if (hit && P.accepts(hit, el)) return {x: Math.round(x * 100) / 100, y: Math.round(y * 100) / 100};
    outside = false;
    if (!cover) cover = hit;
  }
  return {cover, outside};
};

// P.aim scrolls as far as a user would have to: not at all, then to the middle, then so
// that the element comes out under bars at either end.
P.aim = (el) => {
  let a = aimAt(el);
  if (a.x !== undefined || a.gone) return a;
  const w = el.ownerDocument.defaultView;
  for (const block of ['center', 'end', 'start']) {
    el.scrollIntoView({block, inline: block === 'center' ? 'center' : 'nearest', behavior: 'instant'});
    a = aimAt(el);
    a.scrolled = true;
    if (a.x !== undefined) return a;
  }
  el.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  a.cover = aimAt(el).cover || a.cover;
  return a;
};

P.disabled = (el) => {
  if (el.matches(':disabled')) return 'it is disabled';
  if (el.closest('[aria-disabled=true]')) return 'it is marked as disabled (aria-disabled)';
  if (el.closest('[inert]')) return 'it is inert';
  return '';
};

// P.route finds the frame of another origin that a bid lies in: {bid, path}, or null.
P.route = (bid) => {
  for (let n = 1; n <= bid.length; n++) {
    if (n < bid.length && /[A-Z]/.test(bid[n])) continue;
    const el = P.byBid(bid.slice(0, n));
    if (!el || !P.registry.isFrame(el) || el.contentDocument || n === bid.length) continue;
    const path = [];
    for (let host = el; host;) {
      const w = host.ownerDocument.defaultView;
      let i = 0;
      while (i < w.length && w[i] !== host.contentWindow) i++;
      path.unshift(i);
      host = w === window ? null : w.frameElement;
    }
    return {bid: bid.slice(0, n), path};
  }
  return null;
};

// P.carry turns a point of such a frame's viewport into one of ours, and brings it into
// view.
P.carry = (bid, x, y) => {
  const el = P.byBid(bid);
  if (!el) return {error: {kind: 'stale', message: `the frame [${bid}] is no longer in the page`}};
  const at = () => {
    const p = place(el.ownerDocument), r = el.getBoundingClientRect(), s = getComputedStyle(el);
    const k = el.offsetWidth ? r.width / el.offsetWidth : 1;
    return {x: p.x + p.k * (r.x + k * (el.clientLeft + parseFloat(s.paddingLeft) + x)), y: p.y + p.k * (r.y + k * (el.clientTop + parseFloat(s.paddingTop) + y))};
  };
  const free = (a) => a.x >= 0 && a.y >= 0 && a.x < innerWidth && a.y < innerHeight && P.hit(a.x, a.y) === el;
  let a = at();
  if (free(a)) return a;
  for (const block of ['center', 'start', 'end']) {
    el.scrollIntoView({block, inline: 'nearest', behavior: 'instant'});
    a = at();
    if (free(a)) return Object.assign(a, {scrolled: true});
  }
  return {wait: {kind: 'obscured', message: `${P.label(el)} is covered by ${P.label(P.hit(Math.min(Math.max(a.x, 0), innerWidth - 1), Math.min(Math.max(a.y, 0), innerHeight - 1)) || el)}; close or move that first`}};
};
