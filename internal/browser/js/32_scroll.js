// Scrolling: what a wheel turned over an element, or over the middle of the view, moves.

const scrolls = (el, dx, dy) => {
  const s = getComputedStyle(el);
  const root = el === el.ownerDocument.scrollingElement;
  const can = (over, size, client) => size > client && (root ? over !== 'hidden' : over === 'auto' || over === 'scroll');
  return (dy !== 0 && can(s.overflowY, el.scrollHeight, el.clientHeight)) || (dx !== 0 && can(s.overflowX, el.scrollWidth, el.clientWidth));
};
const room = (el, dx, dy) => {
  const x = el.scrollLeft, y = el.scrollTop;
  return (dx < 0 && x > 0) || (dx > 0 && Math.ceil(x) < el.scrollWidth - el.clientWidth) || (dy < 0 && y > 0) || (dy > 0 && Math.ceil(y) < el.scrollHeight - el.clientHeight);
};

// P.pane is what scrolls at an element: the innermost one that can still move that way,
// or the innermost one that scrolls at all.
const pane = (el, dx, dy) => {
  let first = null;
  for (let n = el; n; n = P.up(n)) {
    if (n.nodeType !== 1) continue;
    if (!scrolls(n, dx, dy)) continue;
    if (room(n, dx, dy)) return n;
    first = first || n;
  }
  return first || (el.ownerDocument || document).scrollingElement;
};

let moving = null;

// P.scrollAt prepares a turn of the wheel; P.scrolled says what it moved.
P.scrollAt = (t, dx, dy) => {
  try {
    P.begin();
    let x = Math.floor(innerWidth / 2), y = Math.floor(innerHeight / 2), el;
    if (t && t.x !== undefined) ({x, y} = t), el = P.find(t);
    else if (t) {
      const r = P.ready(t, {});
      if (!r.el) return r;
      ({el, x, y} = r);
    } else el = P.hit(x, y) || document.scrollingElement;
    const p = pane(el || document.documentElement, dx, dy);
    moving = p && {el: p, left: p.scrollLeft, top: p.scrollTop};
    P.arm(null);
    return {x, y, set: true};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};
P.scrolled = (dx, dy, push) => {
  const m = moving;
  if (!m || !m.el.isConnected) return {x: 0, y: 0, what: 'nothing'};
  if (push) m.el.scrollBy({left: dx, top: dy, behavior: 'instant'});
  const root = m.el === m.el.ownerDocument.scrollingElement;
  return {
    x: Math.round(m.el.scrollLeft - m.left), y: Math.round(m.el.scrollTop - m.top),
    what: root ? 'the page' : P.label(m.el), more: room(m.el, dx, dy),
  };
};
