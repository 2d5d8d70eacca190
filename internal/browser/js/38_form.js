// Form: values and states of controls and widgets, and labels that stand for controls
// which the page has hidden to draw its own.
(() => {
  const R = P.roles;
  const maxOptions = 100;

  const add = (rec, state, text) => {
    (rec.states || (rec.states = [])).push(state);
    rec.attrs += text === undefined ? ', ' + state : ', ' + text;
  };

  const isControl = (tag) => tag === 'input' || tag === 'select' || tag === 'textarea' || tag === 'button';

  // reachable says that a transparent control has a size a pointer can hit: pages lay such
  // inputs over their own drawing of a checkbox or a drop zone.
  const reachable = (el) => el.offsetWidth > 1 && el.offsetHeight > 1;

  // label tells about the control of a label: "named" when the control is listed under the
  // label's text, so that the text need not be repeated; "stands" when the control cannot be
  // seen or hit, so that the label has to be listed in its place.
  const label = (el, hide) => {
    const c = el.control;
    if (!c) return null;
    const shown = c.checkVisibility({visibilityProperty: true}) && reachable(c) && !(hide.has(c) && P.styles.test(c) === 1);
    const toggles = c.localName === 'input' && (c.type === 'checkbox' || c.type === 'radio' || c.type === 'file');
    return {
      control: c, stands: !shown && toggles, role: toggles ? R.roleOf(c, 'input', c.getAttribute('role'), false) : '',
      named: shown && !c.hasAttribute('aria-label') && !c.hasAttribute('aria-labelledby') && c.localName !== 'button' && !/^(?:button|submit|reset|image)$/.test(c.type),
    };
  };

  const tristate = (rec, key, v) => {
    if (v === 'true' || v === 'mixed') add(rec, v === 'mixed' ? 'mixed' : key, key + "='" + v + "'");
    else if (v === 'false') rec.attrs += ', ' + key + "='false'";
  };

  const input = (rec, el) => {
    const type = el.type;
    switch (type) {
      case 'checkbox': case 'radio':
        tristate(rec, 'checked', el.indeterminate ? 'mixed' : el.checked ? 'true' : 'false');
        return;
      case 'submit': case 'reset': case 'button': case 'image':
        return;
      case 'file':
        rec.attrs += ", type='file'";
        rec.value = [...el.files].map((f) => f.name).join(', ');
        if (el.multiple) rec.attrs += ', multiple';
        return;
      case 'password':
        rec.attrs += ", type='password'";
        rec.value = '•'.repeat(Math.min(el.value.length, 100));
        break;
      default:
        rec.value = el.value;
        if (type !== 'text' && type !== 'search') rec.attrs += ", type='" + type + "'";
        if (type === 'number' || type === 'range') bounds(rec, el.min, el.max);
        else if (el.min || el.max) bounds(rec, el.min, el.max);
    }
    writable(rec, el);
  };

  const bounds = (rec, min, max) => {
    if (min !== '' && min !== null) rec.attrs += ', min=' + P.text.quote(String(min));
    if (max !== '' && max !== null) rec.attrs += ', max=' + P.text.quote(String(max));
  };

  const writable = (rec, el) => {
    if (el.readOnly) add(rec, 'readonly');
    if (!rec.value && el.placeholder && el.placeholder !== rec.name) rec.attrs += ', placeholder=' + P.text.quote(P.names.tidy(el.placeholder));
  };

  // choices lists the options of a select. They change only with the document.
  const choices = (el) => {
    const names = [];
    const n = el.options.length;
    for (let i = 0; i < n && i < maxOptions; i++) {
      const o = el.options[i];
      if (o.hidden) continue;
      names.push(P.text.quote(P.names.tidy(o.label)) + (o.disabled ? ' (disabled)' : ''));
    }
    return ', options=[' + names.join(', ') + (n > maxOptions ? ', … (+' + (n - maxOptions) + ' options)' : '') + ']';
  };

  const select = (rec, el) => {
    if (!rec.choices) rec.choices = choices(el);
    rec.value = [...el.selectedOptions].map((o) => P.names.tidy(o.label)).join(', ');
    if (el.multiple) rec.attrs += ', multiple';
    rec.attrs += rec.choices;
  };

  const native = (rec, el, tag) => {
    switch (tag) {
      case 'input': input(rec, el); break;
      case 'select': select(rec, el); break;
      case 'textarea': rec.value = el.value; writable(rec, el); break;
      case 'progress': if (el.position >= 0) rec.value = Math.round(el.position * 100) + '%'; break;
      case 'meter': rec.value = String(el.value); bounds(rec, el.min, el.max); break;
      case 'summary': {
        const d = el.parentElement;
        if (d && d.localName === 'details') d.open ? add(rec, 'expanded', 'expanded=True') : add(rec, 'collapsed', 'expanded=False');
        break;
      }
      case 'dialog': if (el.matches(':modal')) add(rec, 'modal', 'modal=True'); break;
      case 'video': case 'audio': add(rec, el.paused ? 'paused' : 'playing'); break;
    }
    if (isControl(tag)) {
      if (el.matches(':disabled')) add(rec, 'disabled', 'disabled=True');
      if (el.required) add(rec, 'required');
      if (el.matches(':user-invalid')) add(rec, 'invalid', "invalid='true'");
    }
  };

  const bool = (rec, el, key, off) => {
    const v = el.getAttribute('aria-' + key);
    if (v === 'true') add(rec, key, key + '=True');
    else if (v === 'false' && off) { off === true ? rec.attrs += ', ' + key + '=False' : add(rec, off, key + '=False'); }
  };

  const aria = (rec, el, tag) => {
    const nativeCheck = tag === 'input' && (el.type === 'checkbox' || el.type === 'radio');
    if (!nativeCheck) tristate(rec, 'checked', el.getAttribute('aria-checked'));
    tristate(rec, 'pressed', el.getAttribute('aria-pressed'));
    if (tag !== 'summary') bool(rec, el, 'expanded', 'collapsed');
    bool(rec, el, 'selected', true);
    if (!(isControl(tag) && el.matches(':disabled'))) bool(rec, el, 'disabled');
    if (el.getAttribute('aria-required') === 'true' && !el.required) add(rec, 'required');
    if (el.getAttribute('aria-readonly') === 'true') add(rec, 'readonly');
    bool(rec, el, 'modal');
    bool(rec, el, 'busy');
    let v = el.getAttribute('aria-invalid');
    if (v && v !== 'false') add(rec, 'invalid', 'invalid=' + P.text.quote(v));
    v = el.getAttribute('aria-current');
    if (v && v !== 'false') add(rec, 'current', 'current=' + P.text.quote(v));
    v = el.getAttribute('aria-sort');
    if (v && v !== 'none') rec.attrs += ', sort=' + P.text.quote(v);
    v = el.getAttribute('aria-haspopup');
    if (v && v !== 'false') rec.attrs += ', hasPopup=' + P.text.quote(v === 'true' ? 'menu' : v);
    v = el.getAttribute('aria-valuetext') || el.getAttribute('aria-valuenow');
    if (v && !rec.value) {
      rec.value = v;
      bounds(rec, el.getAttribute('aria-valuemin'), el.getAttribute('aria-valuemax'));
    }
  };

  // state adds what rec's element, or the control it stands for, says about itself.
  const state = (rec, el, tag, hasAria, isEditor) => {
    if (rec.role === 'heading') {
      rec.attrs += ', level=' + (el.getAttribute('aria-level') || (/^h[1-6]$/.test(tag) ? tag[1] : '2'));
    }
    native(rec, el, tag);
    if (isEditor) rec.value = el.innerText.replace(/\n$/, '');
    if (hasAria) aria(rec, el, tag);
    if (rec.value) rec.value = P.text.shorten(rec.value);
  };

  // Questions for 43_cells.js: what is said of a control without its document changing.
  const live = new Set(['input', 'select', 'textarea', 'button', 'progress', 'meter', 'summary', 'dialog', 'video', 'audio']);
  const told = (rec) => rec.attrs + '\n' + rec.value + '\n' + (rec.states ? rec.states.join() : '');
  const stateOf = (q) => {
    const rec = {role: q.role, name: q.name, value: '', attrs: '', states: null, choices: q.choices};
    state(rec, q.el, q.el.localName, q.aria, false);
    return told(rec);
  };
  const roleOf = (el) => R.roleOf(el, el.localName, el.getAttribute('role'), false);
  const control = (el) => el.control;
  const written = (l) => l === null ? '' : l.stands + ' ' + l.role + ' ' + l.named;

  P.form = {add, isControl, reachable, label, state, live, told, stateOf, roleOf, control, written};
})();
