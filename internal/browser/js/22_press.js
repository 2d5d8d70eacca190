// Pressing, watched: a press counts only if the element that was meant got it. One that
// would land on something else is swallowed before any listener of the page sees it.

let armed = null;
let last = null; // what arrived, for whoever asks again
P.watch = (e) => {
  const a = armed;
  if (!a) return;
  const type = e.type;
  if (a.el && a.verdict === null && (type === 'pointerdown' || type === 'mousedown' || type === 'dragstart')) {
    const t = e.composedPath()[0];
    const hit = t && t.nodeType === 1 ? t : t && t.parentElement;
    // Listeners outside a closed shadow tree see its host only.
    a.verdict = !!hit && (P.accepts(hit, a.el) || (P.shadow(hit) !== null && P.within(a.el, hit)));
    if (!a.verdict) a.cover = hit;
  }
  if (a.verdict === false) {
    e.preventDefault();
    e.stopImmediatePropagation();
    return;
  }
  a.seen[type] = (a.seen[type] || 0) + 1;
};
P.arm = (el) => { last = null; armed = {el, seen: {__proto__: null}, verdict: null, cover: null}; };

// P.begin tells all frames that a new step has begun.
P.begin = () => { for (const w of P.windows()) w.P.ask('begin'); return 1; };

const fail = (e) => {
  if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}};
  throw e;
};
const later = (kind, message) => ({wait: {kind, message}});

const buttons = /^(button|submit|reset|image|checkbox|radio|file|color|range)$/;
P.isText = (el) => el.localName === 'textarea' || (el.localName === 'input' && !buttons.test(el.type)) || el.isContentEditable;

// ready finds the element and a point to press it. {wait} means that it may yet come.
const ready = (t, o) => {
  let el = P.find(t);
  if (el.localName === 'option' || el.localName === 'optgroup') {
    const s = el.closest('select');
    if (s && !P.shown(el) || s && s.size < 2 && !s.multiple) throw new P.Miss('not_visible', `${P.label(el)} is an option of ${P.label(s)}; use select_option(${JSON.stringify(P.bid(s))}, ...)`);
  }
  // A control hidden behind its label is worked through the label.
  if (!P.shown(el) && el.labels) for (const l of el.labels) if (P.shown(l)) { el = l; break; }
  if (!P.shown(el)) return later('not_visible', `${P.label(el)} is not visible; something else may have to be opened first`);
  const why = o.enabled ? P.disabled(P.find(t)) : '';
  if (why) return later('disabled', `${P.label(el)} cannot be used now: ${why}`);
  const a = P.aim(el);
  if (a.gone) throw new P.Miss('stale', `${P.label(el)} has left the page`);
  if (a.x === undefined) {
    if (a.outside) return later('not_visible', `${P.label(el)} lies outside of what can be scrolled into view`);
    return later('obscured', `${P.label(el)} is covered by ${a.cover ? P.label(a.cover) : 'something'}; close or move that first`);
  }
  return {el, x: a.x, y: a.y, scrolled: !!a.scrolled};
};
P.ready = ready;

const bare = (r) => { delete r.el; r.point = true; return r; };

// P.press finds a point and arms the watch for it.
P.press = (t, o) => {
  try {
    P.begin();
    const r = ready(t, o);
    if (!r.el) return r;
    if (o.editable) {
      const refuse = notEditable(r.el);
      if (refuse) throw refuse;
    }
    P.arm(r.el);
    return bare(r);
  } catch (e) { return fail(e); }
};

const notEditable = (el) => {
  if (el.localName === 'select') return new P.Miss('not_editable', `${P.label(el)} is a list: use select_option`);
  if (el.localName === 'input' && /^(checkbox|radio)$/.test(el.type)) return new P.Miss('not_editable', `${P.label(el)} is a ${el.type}: use click`);
  if (el.localName === 'input' && el.type === 'file') return new P.Miss('not_editable', `${P.label(el)} takes files: use upload_file`);
  if (el.localName === 'input' && /^(button|submit|reset|image)$/.test(el.type)) return new P.Miss('not_editable', `${P.label(el)} is a button: use click`);
  const text = P.isText(el) || (el.localName === 'input' && /^(color|range)$/.test(el.type));
  if (!text) return new P.Miss('not_editable', `${P.label(el)} is not a field; name the input, textarea or editable element itself`);
  if (el.readOnly) return new P.Miss('not_editable', `${P.label(el)} is read-only`);
  return null;
};
P.notEditable = notEditable;

// P.released says how many releases of a button have come since the watch was armed. All
// that a release sets off by itself happens in the same task.
P.released = () => armed ? armed.seen.mouseup || 0 : 0;

// P.arrived says what became of the press: how often it arrived, what swallowed it.
P.arrived = () => {
  const a = armed;
  armed = null;
  if (!a) return last || {down: 0, key: 0};
  const s = a.seen;
  const down = Math.max(s.pointerdown || 0, s.mousedown || 0);
  return last = {
    label: a.el && (a.verdict === false || !down) ? P.label(a.el) : '',
    down,
    move: Math.max(s.mousemove || 0, s.pointermove || 0, s.mouseover || 0),
    key: s.keydown || 0, input: Math.max(s.input || 0, s.beforeinput || 0), wheel: s.wheel || 0, click: s.click || s.auxclick || s.contextmenu || 0,
    cover: a.verdict === false ? (a.cover ? P.label(a.cover) : 'something else') : '',
  };
};
