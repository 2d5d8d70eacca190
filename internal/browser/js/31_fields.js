// Writing into fields and choosing options.

const setter = (el) => Object.getOwnPropertyDescriptor(Object.getPrototypeOf(el), 'value').set;
// A value is set past whatever the page's scripts hang on the element: their world is
// not ours. Libraries that track writes so see a change, as with a user's input.
const put = (el, value) => setter(el).call(el, value);
const fire = (el, ...types) => {
  const w = el.ownerDocument.defaultView;
  for (const t of types) el.dispatchEvent(t === 'input' ? new w.InputEvent('input', {bubbles: true, composed: true}) : new w.Event(t, {bubbles: true}));
};

const formats = {
  date: 'YYYY-MM-DD', time: 'HH:MM', 'datetime-local': 'YYYY-MM-DDTHH:MM', month: 'YYYY-MM', week: 'YYYY-Www',
  color: '#rrggbb', range: 'a number', number: 'a number',
};

// whole sets the value of a field whose parts a user would pick.
const whole = (el, value) => {
  const before = el.value;
  if (value !== '' || el.type === 'color' || el.type === 'range') {
    const probe = el.ownerDocument.createElement('input');
    probe.type = el.type;
    if (el.type === 'range') { probe.min = el.min; probe.max = el.max; probe.step = el.step; }
    put(probe, el.type === 'color' ? value.toLowerCase() : value);
    if (probe.value !== value && !same(el.type, probe.value, value))
      throw new P.Miss('invalid_value', `${JSON.stringify(value)} does not fit ${P.label(el)}: it takes ${formats[el.type]}`);
  }
  el.focus();
  put(el, el.type === 'color' ? value.toLowerCase() : value);
  if (el.value !== before) fire(el, 'input', 'change');
  return {set: true, value: el.value};
};
const same = (type, got, want) => {
  if (got === '') return false;
  if (type === 'color') return got === want.toLowerCase();
  if (type === 'range') return Number(got) === Number(want);
  // Seconds and fractions may be written with and without.
  const t = (s) => s.replace(' ', 'T').replace(/(\d\d:\d\d)(:00(\.0+)?)?$/, '$1').replace(/\.(\d+?)0*$/, '.$1');
  return t(got) === t(want);
};

// P.prepare readies a field for text: finds it, focuses it, selects what is in it.
P.prepare = (t, value) => {
  try {
    P.begin();
    const el = P.find(t);
    const refuse = P.notEditable(el);
    const r = refuse && !/read-only/.test(refuse.message) ? null : P.ready(t, {enabled: true});
    if (refuse) throw refuse;
    if (!r.el) return r;
    if (el.localName === 'input' && el.type in formats && el.type !== 'number') return whole(el, value);
    if (el.localName === 'input' && /[\r\n]/.test(value)) throw new P.Miss('invalid_value', `${P.label(el)} holds one line; the text has a line break`);
    if (el.type === 'number' && value !== '' && !/^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(value.trim())) throw new P.Miss('invalid_value', `${P.label(el)} takes a number, not ${JSON.stringify(value)}`);
    P.arm(null);
    select(el);
    const d = el.getRootNode();
    if (!P.within(d.activeElement, el) && !P.within(el, d.activeElement)) throw new P.Miss('not_editable', `${P.label(el)} does not take the focus`);
    const empty = el.isContentEditable ? el.textContent === '' : el.value === '';
    filling = el;
    return {empty, lines: el.isContentEditable, scrolled: r.scrolled};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};
let filling = null;

const select = (el) => {
  el.focus({preventScroll: true});
  if (el.isContentEditable) {
    const s = el.ownerDocument.defaultView.getSelection();
    s.selectAllChildren(el);
    return;
  }
  if (el.select) el.select();
};

// P.filled compares what the field holds with what was typed.
P.filled = (want) => {
  const el = filling;
  filling = null;
  const a = P.arrived();
  if (!el || !el.isConnected) return {arrived: a, gone: true};
  const got = el.isContentEditable ? el.innerText.replace(/\n$/, '') : el.value;
  const eq = (x, y) => x === y || (el.type === 'number' && x !== '' && Number(x) === Number(y)) || x.replace(/\r\n?/g, '\n') === y.replace(/\r\n?/g, '\n');
  const cut = !eq(got, want) && el.maxLength > 0 && want.startsWith(got);
  return {arrived: a, same: eq(got, want), cut, max: el.maxLength, got: got.slice(0, 200), label: P.label(el)};
};
// P.force writes what typing did not get in.
P.force = (t, value) => {
  const el = P.find(t);
  if (el.isContentEditable) return false;
  put(el, value);
  fire(el, 'input');
  return el.value === value;
};

const squeeze = (s) => s.replace(/\s+/g, ' ').trim();

// P.choose selects exactly the wanted options, each named by its label or its value.
P.choose = (t, wanted) => {
  try {
    P.begin();
    const el = P.find(t);
    if (el.localName !== 'select') {
      const inner = el.localName === 'label' && el.control && el.control.localName === 'select' ? el.control : null;
      if (!inner) throw new P.Miss('not_editable', `${P.label(el)} is not a select element: click it and then click the option that appears`);
      return P.choose({bid: P.bid(inner)}, wanted);
    }
    const r = P.ready(t, {enabled: true});
    if (!r.el) return r;
    if (!el.multiple && wanted.length !== 1) throw new P.Miss('invalid_value', `${P.label(el)} takes one option, not ${wanted.length}`);
    const all = [...el.options];
    const chosen = wanted.map((w) => {
      const o = all.find((x) => squeeze(x.label) === squeeze(w)) || all.find((x) => x.value === w) || all.find((x) => squeeze(x.textContent) === squeeze(w));
      if (!o) {
        const names = all.slice(0, 12).map((x) => JSON.stringify(squeeze(x.label))).join(', ') + (all.length > 12 ? ', ...' : '');
        throw new P.Miss('no_such_option', `${P.label(el)} has no option ${JSON.stringify(w)}; it has ${names || 'none'}`);
      }
      if (o.disabled || (o.parentElement.localName === 'optgroup' && o.parentElement.disabled)) throw new P.Miss('disabled', `option ${JSON.stringify(squeeze(o.label))} of ${P.label(el)} is disabled`);
      return o;
    });
    el.focus();
    const before = all.map((o) => o.selected);
    if (el.multiple) for (const o of all) o.selected = chosen.includes(o);
    else chosen[0].selected = true;
    const changed = all.some((o, i) => o.selected !== before[i]);
    if (changed) fire(el, 'input', 'change');
    return {set: true, changed, value: squeeze(chosen.map((o) => o.label).join(', '))};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};

// P.focusOn puts the keyboard focus on an element.
P.focusOn = (t) => {
  try {
    P.begin();
    const el = P.find(t);
    if (!P.shown(el)) return {wait: {kind: 'not_visible', message: `${P.label(el)} is not visible`}};
    const why = P.disabled(el);
    if (why) return {wait: {kind: 'disabled', message: `${P.label(el)} cannot be used now: ${why}`}};
    el.focus();
    const d = el.getRootNode();
    if (!d.activeElement || !(d.activeElement === el || P.within(d.activeElement, el) || P.within(el, d.activeElement) && el.isContentEditable))
      throw new P.Miss('not_editable', `${P.label(el)} does not take the keyboard focus`);
    P.arm(null);
    return {set: true};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};

// P.checked is whether a checkbox, radio button or switch is on; null for anything else.
P.checked = (t) => {
  try {
    let el = P.find(t);
    if (el.localName === 'label' && el.control) el = el.control;
    if (el.localName === 'input' && /^(checkbox|radio)$/.test(el.type)) return {set: true, checked: el.checked && !el.indeterminate, radio: el.type === 'radio'};
    const s = el.getAttribute('aria-checked') ?? el.getAttribute('aria-pressed');
    if (s === null) throw new P.Miss('not_editable', `${P.label(el)} is not a checkbox, radio button or switch`);
    return {set: true, checked: s === 'true', radio: el.getAttribute('role') === 'radio'};
  } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};

// P.fileInput finds the input that takes files for an element: itself, its label's, one inside it.
P.fileInput = (t, n) => {
  let el = P.find(t);
  if (el.localName === 'label' && el.control) el = el.control;
  if (!(el.localName === 'input' && el.type === 'file')) el = el.querySelector('input[type=file]') || el;
  if (!(el.localName === 'input' && el.type === 'file')) throw new P.Miss('not_editable', `${P.label(el)} does not take files`);
  const why = P.disabled(el);
  if (why) throw new P.Miss('disabled', `${P.label(el)} cannot be used now: ${why}`);
  if (n > 1 && !el.multiple) throw new P.Miss('invalid_value', `${P.label(el)} takes one file, not ${n}`);
  return el;
};
P.findFileInput = (t, n) => {
  try { P.begin(); P.chosen = P.fileInput(t, n); P.trial = document.createElement('input'); P.trial.type = 'file'; P.trial.multiple = true; return {set: true}; } catch (e) { if (e instanceof P.Miss) return {error: {kind: e.kind, message: e.message}}; throw e; }
};

// P.readable says whether the files on trial are there.
P.readable = async () => {
  const files = [...P.trial.files];
  P.trial = null;
  try { for (const f of files) await (f.size ? f.slice(0, 1) : f).arrayBuffer(); } catch { return false; }
  return files.length > 0;
};

// P.filledState is P.filled and, unless requests are open, the page's work in one answer.
P.filledState = (want) => {
  const f = P.filled(want);
  const s = P.work();
  return Object.assign(s.mine ? {again: true, ended: s.ended} : s, {filled: f, arrived: f.arrived});
};
// P.listen readies the watch for keys that go to whatever has the focus.
P.listen = () => { P.begin(); P.arm(null); return 1; };
