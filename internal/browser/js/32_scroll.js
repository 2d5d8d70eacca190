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

// turn scrolls by a wheel that the page has let pass, at once and on the main thread:
// the compositor would do it in frames of its own, on a clock of its own.
const turn = (e) => {
  if (!e.isTrusted || e.defaultPrevented || !moving) return;
  e.preventDefault();
  moving.el.scrollBy({left: moving.dx, top: moving.dy, behavior: 'instant'});
};
const unhook = () => { if (moving) for (const w of moving.windows) { try { w.removeEventListener('wheel', turn); } catch { /* it has gone */ } } };
const hook = (el, dx, dy) => {
  unhook();
  moving = el && {el, dx, dy, left: el.scrollLeft, top: el.scrollTop, windows: P.windows()};
  if (moving) for (const w of moving.windows) w.addEventListener('wheel', turn, {passive: false});
};

// P.scrollAt prepares a turn of the wheel; P.scrolled says what it moved. An element
// names the pane that it lies in: it need not be in view itself.
P.scrollAt = (t, dx, dy) => {
  try {
    P.begin();
    let x = Math.floor(innerWidth / 2), y = Math.floor(innerHeight / 2);
    let p;
    if (t && t.x !== undefined) ({x, y} = t), p = pane(P.find(t), dx, dy);
    else if (t) {
      const el = P.find(t);
      p = pane(el, dx, dy);
      if (p && p !== document.scrollingElement) {
        const a = P.aim(p);
        if (a.x === undefined) return {wait: {kind: 'obscured', message: `${P.label(p)}, in which ${P.label(el)} lies, is covered by ${a.cover ? P.label(a.cover) : 'something'}`}};
        ({x, y} = a);
      }
    } else p = pane(P.hit(x, y) || document.documentElement, dx, dy);
    hook(p, dx, dy);
    P.arm(null);
    return {x, y, set: true, point: true};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};
P.scrolled = (dx, dy) => {
  const m = moving;
  unhook();
  moving = null;
  if (!m || !m.el.isConnected) return {x: 0, y: 0, what: 'nothing'};
  const root = m.el === m.el.ownerDocument.scrollingElement;
  const x = Math.round(m.el.scrollLeft - m.left), y = Math.round(m.el.scrollTop - m.top);
  return {x, y, what: root ? 'the page' : P.label(m.el), more: room(m.el, dx, dy)};
};
