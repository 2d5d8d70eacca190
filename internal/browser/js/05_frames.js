// Frames that our world can enter: those of the same origin. Others have a P of their
// own, to which the driver talks through their context.

// P.windows lists this window and every window below it that can be entered.
P.windows = () => {
  const out = [];
  const visit = (w) => {
    try { if (!w.P) return; } catch { return; }
    out.push(w);
    for (let i = 0; i < w.length; i++) visit(w[i]);
  };
  visit(window);
  return out;
};

// P.shadow must know the closed roots of all frames.
P.shadow = (el) => {
  const open = el.shadowRoot;
  if (open) return open;
  const mine = P.roots.get(el);
  if (mine) return mine;
  const w = el.ownerDocument.defaultView;
  if (!w || w === window) return null;
  try { return w.P && w.P.roots.get(el) || null; } catch { return null; }
};

// P.up is the parent of a node as a user sees the tree: through slots, out of shadow
// roots and out of frames.
P.up = (n) => {
  if (n.assignedSlot) return n.assignedSlot;
  const p = n.parentNode;
  if (!p) return null;
  if (p.nodeType === 11) return p.host || null;
  if (p.nodeType === 9) { const w = p.defaultView; try { return w && w.frameElement; } catch { return null; } }
  return p;
};

P.within = (inner, outer) => {
  for (let n = inner; n; n = P.up(n)) if (n === outer) return true;
  return false;
};

// P.describe names an element for people: what stands in the way, what was found.
P.describe = (el) => {
  if (!el) return 'nothing';
  let s = el.localName;
  if (el.id) s += '#' + el.id;
  else if (typeof el.className === 'string' && el.className.trim()) s += '.' + el.className.trim().split(/\s+/).slice(0, 2).join('.');
  const t = (el.getAttribute('aria-label') || el.textContent || '').replace(/\s+/g, ' ').trim();
  if (t) s += ' "' + (t.length > 30 ? t.slice(0, 29) + '\u2026' : t) + '"';
  return s;
};
P.label = (el) => (P.bid ? '[' + P.bid(el) + '] ' : '') + P.describe(el);
