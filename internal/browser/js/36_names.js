// Names: the accessible name of an element from everything but its visible content,
// which the observation pass gathers as it goes by. After the accname specification,
// without its CSS content step.
(() => {
  const R = P.roles;

  const tidy = (s) => s.replace(/[\s\u0000-\u001f]+/g, ' ').trim();

  // textOf reads the text of a subtree for a label: hidden parts are left out, unless the
  // subtree itself is hidden (a label may point at hidden text, accname 2B). Pictures give
  // their alt, controls inside a label their value, "skip" nothing.
  const textOf = (root, skip) => {
    const all = !root.checkVisibility();
    const out = [];
    let n = root;
    let budget = 5000; // nodes: a label is short; a page-long one is cut
    while (budget-- > 0) {
      let down = false;
      if (n.nodeType === 3) out.push(n.data);
      else if (n.nodeType === 1) down = n === root || open(n, all, skip, out);
      const inside = down && (n.shadowRoot || n).firstChild;
      if (inside) { n = inside; continue; }
      while (n !== root && !n.nextSibling) {
        n = n.parentNode.host && n.parentNode.nodeType === 11 ? n.parentNode.host : n.parentNode;
        if (R.block.has(n.localName)) out.push(' ');
      }
      if (n === root) break;
      n = n.nextSibling;
    }
    return tidy(out.join(''));
  };

  // open says whether to read inside n, and adds what stands for n when not.
  const open = (n, all, skip, out) => {
    const tag = n.localName;
    if (n === skip || R.skipped.has(tag) || n.getAttribute('aria-hidden') === 'true') return false;
    if (!all && !n.checkVisibility({visibilityProperty: true}) && getComputedStyle(n).display !== 'contents') return false;
    const label = n.getAttribute('aria-label');
    if (label && label.trim()) { out.push(' ', label, ' '); return false; }
    if (tag === 'img') { out.push(' ', n.alt, ' '); return false; }
    if (tag === 'select') { const o = n.selectedOptions[0]; out.push(' ', o ? o.label : '', ' '); return false; }
    if (tag === 'textarea') { out.push(' ', n.value, ' '); return false; }
    if (tag === 'input') {
      if (n.type !== 'password' && n.type !== 'hidden' && n.type !== 'checkbox' && n.type !== 'radio') out.push(' ', n.value, ' ');
      return false;
    }
    if (tag === 'br' || R.block.has(tag)) out.push(' ');
    return true;
  };

  const labelText = (el) => {
    const l = el.labels;
    if (!l || !l.length) return '';
    let s = textOf(l[0], el);
    for (let i = 1; i < l.length; i++) s += ' ' + textOf(l[i], el);
    return s.trim();
  };

  const firstChildText = (el, tag) => {
    for (let c = el.firstElementChild; c; c = c.nextElementSibling) if (c.localName === tag) return textOf(c);
    return '';
  };

  const native = (el, tag) => {
    switch (tag) {
      case 'input':
        switch (el.type) {
          case 'submit': return el.value || labelText(el) || 'Submit';
          case 'reset': return el.value || labelText(el) || 'Reset';
          case 'button': return el.value || labelText(el);
          case 'image': return el.alt || labelText(el) || el.title || 'Submit';
          case 'file': return labelText(el) || el.title || 'Choose file';
        }
        return labelText(el);
      case 'select': case 'textarea': case 'meter': case 'progress': case 'output': return labelText(el);
      case 'button': return el.id ? labelText(el) : ''; // a button inside its label is too rare to ask each
      case 'img': return el.alt;
      case 'fieldset': return firstChildText(el, 'legend');
      case 'table': return firstChildText(el, 'caption');
      case 'figure': return firstChildText(el, 'figcaption');
      case 'svg': return firstChildText(el, 'title');
    }
    return '';
  };

  // labelledBy joins the texts of the elements that aria-labelledby names.
  const labelledBy = (el) => {
    const root = el.getRootNode();
    let s = '';
    for (const id of el.getAttribute('aria-labelledby').split(/\s+/)) {
      const l = id && root.getElementById && root.getElementById(id);
      if (l) s += ' ' + ((l !== el && l.getAttribute('aria-label')) || own(l) || textOf(l));
    }
    return tidy(s);
  };

  const own = (l) => l.localName === 'img' || l.localName === 'input' ? native(l, l.localName) : '';

  // before gives the name that comes before content in the order of the specification:
  // aria-labelledby, aria-label, then what HTML says. "attrs" has bit 1 for aria-label,
  // 2 for aria-labelledby.
  // Tags whose name may come from the text of other elements, or of some that may be hidden.
  const outside = new Set(['input', 'select', 'textarea', 'meter', 'progress', 'output', 'button', 'fieldset', 'table', 'figure', 'svg']);

  P.names = {
    tidy, textOf, labelText, outside,
    again: (el) => P.names.before(el, el.localName, el.hasAttribute('aria-label'), el.hasAttribute('aria-labelledby')),
    before(el, tag, ariaLabel, ariaLabelledBy) {
      if (ariaLabelledBy) { const s = labelledBy(el); if (s) return s; }
      if (ariaLabel) { const s = tidy(el.getAttribute('aria-label')); if (s) return s; }
      return tidy(native(el, tag) || '');
    },
    after(el, tag) {
      return tidy(el.getAttribute('title') || el.getAttribute('placeholder') || el.getAttribute('aria-placeholder') || '');
    },
  };
})();
