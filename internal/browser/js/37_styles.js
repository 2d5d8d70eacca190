// Styles: which elements might be hidden by other means than display, might be clickable
// by their cursor, or might scroll.
//
// Asking Chromium for a computed style or a box costs microseconds, for every element of
// a page milliseconds. Few rules of a style sheet can hide anything, so their selectors are
// collected once per sheet, and only the elements they match are asked.
(() => {
  const zero = '(?<![\\d.])0(?:px|em|rem|%|pt|vw|vh)?(?![\\d.%a-z])';
  const hiding = new RegExp([
    'content-visibility: ?hidden',
    '(?<![\\w-])clip(?:-path)?:(?! ?(?:auto|none))',
    '(?<![\\w-])font(?:-size)?:[^;]*' + zero,
    '(?<![\\w-])(?:left|right|top|bottom|inset[a-z-]*|margin[a-z-]*|text-indent):[^;]*-(?:\\d{3,}|\\d+(?:\\.\\d+)?(?:vw|vh|%))',
    '(?<![\\w-])(?:transform|translate):[^;]*-(?:\\d{3,}|[1-9]\\d(?:vw|vh))',
    '(?<![\\w-])(?:transform|scale):[^;]*(?:scale[a-zA-Z3]*\\(|scale: ?)' + zero,
    '(?<![\\w-])(?:max-)?(?:width|height|inline-size|block-size): ?(?:' + zero + '|1px)',
    '(?<![\\w-])(?:clip|clip-path|font|font-size|left|right|top|bottom|text-indent|transform|translate|scale|max-height|max-width):[^;]*var\\(',
  ].join('|'));
  const dimming = /(?<![\w-])visibility:[^;]*(?:hidden|collapse|var\()|(?<![\w-])opacity: ?(?:0?\.?0*(?:%|;|\s|$)|var\()|(?<![\w-])filter:[^;]*opacity/;
  const pointing = /cursor:[^;]*pointer/;
  const scrolling = /overflow(?:-[a-z]+)?:[^;]*(?:auto|scroll)/;

  const probe = document.createDocumentFragment();
  const valid = (sel) => { try { probe.querySelector(sel); return true; } catch { return false; } };

  // Rules inside @media and the like count even when the condition does not hold: what is
  // collected are candidates.
  const collect = (rules, outer, into) => {
    for (const r of rules) {
      if (r.styleSheet) { collectSheet(r.styleSheet, into); continue; }
      let sel = outer;
      if (r.selectorText !== undefined) {
        sel = r.selectorText;
        if (outer) sel = sel.includes('&') ? sel.replaceAll('&', ':is(' + outer + ')') : ':is(' + outer + ') :is(' + sel + ')';
      }
      if (r.style && sel) add(r.style.cssText, sel, into);
      if (r.cssRules && r.cssRules.length) collect(r.cssRules, sel, into);
    }
  };

  const add = (text, sel, into) => {
    const hides = hiding.test(text), dims = dimming.test(text), points = pointing.test(text), scrolls = scrolling.test(text);
    if (!(hides || dims || points || scrolls) || !valid(sel)) return;
    if (hides) into.hide.push(sel);
    if (dims) into.dim.push(sel);
    if (points) into.point.push(sel);
    if (scrolls) into.scroll.push(sel);
  };

  const collectSheet = (sheet, into) => {
    try {
      collect(sheet.cssRules, '', into);
    } catch { // a sheet of another origin cannot be read: then every element is a candidate
      into.hide.push('*');
      into.dim.push('*');
      into.point.push('*');
      into.scroll.push('*');
    }
  };

  // ending stands for a list of rules when it is asked whether they have changed: how many
  // there are and what the last one says, into groups of rules.
  const ending = (rules) => {
    const r = rules[rules.length - 1];
    if (!r) return '';
    const inner = r.cssRules && r.cssRules.length ? r.cssRules : null;
    return rules.length + (inner ? (r.selectorText || r.conditionText || '') + '{' + ending(inner) : r.cssText);
  };

  const sheets = new WeakMap(); // sheet -> what was collected, and by how many rules
  const ofSheet = (sheet) => {
    let n = -1;
    try { n = sheet.cssRules.length; } catch { /* as above */ }
    const last = n > 0 ? ending(sheet.cssRules) : '';
    let c = sheets.get(sheet);
    if (!c || c.n !== n || c.last !== last) {
      c = {n, last, hide: [], dim: [], point: [], scroll: []};
      collectSheet(sheet, c);
      sheets.set(sheet, c);
    }
    return c;
  };

  const select = (root, list) => list.length ? new Set(root.querySelectorAll(list.join(','))) : new Set();

  // rulesOf gives what was collected from each of the sheets that apply.
  const rulesOf = (root) => {
    const out = [];
    for (const s of root.styleSheets) if (!s.disabled) out.push(ofSheet(s));
    for (const s of root.adoptedStyleSheets) out.push(ofSheet(s));
    return out;
  };

  // lasting says that an unchanged document has the same candidates as before: the rules are
  // the same, no selector looks at anything but the document, and nothing is animated.
  const plain = (c) => c.plain ?? (c.plain = ![c.hide, c.dim, c.point, c.scroll].some((l) => l.some((sel) => sel.includes(':'))));
  const lasting = (root, s) => {
    if (s.animated || (root.getAnimations && root.getAnimations().length)) return false;
    const rules = rulesOf(root);
    return rules.length === s.rules.length && rules.every((c, i) => c === s.rules[i] && plain(c));
  };

  // P.styles.of gives the candidates below a document or shadow root.
  const of = (root) => {
    const hide = [], dim = [], point = [], scroll = [];
    const rules = rulesOf(root);
    for (const c of rules) { hide.push(...c.hide); dim.push(...c.dim); point.push(...c.point); scroll.push(...c.scroll); }
    const out = {hide: select(root, hide), dim: select(root, dim), point: select(root, point), scroll: select(root, scroll), rules, animated: false};
    for (const el of root.querySelectorAll('[hidden="until-found" i]')) out.hide.add(el);
    for (const el of root.querySelectorAll('[style]')) {
      const text = el.style.cssText;
      if (hiding.test(text)) out.hide.add(el);
      if (dimming.test(text)) out.dim.add(el);
      if (pointing.test(text)) out.point.add(el);
      if (scrolling.test(text)) out.scroll.add(el);
    }
    if (root.getAnimations) for (const a of root.getAnimations()) {
      if (a.effect && a.effect.target) { out.hide.add(a.effect.target); out.dim.add(a.effect.target); }
      out.animated = true;
    }
    return out;
  };

  const parentOf = (el) => el.assignedSlot || el.parentElement || (el.parentNode && el.parentNode.host) || null;

  // offPage says that the box lies wholly left of or above all that can be scrolled to.
  const offPage = (el, cs, box) => {
    let x = box.right, y = box.bottom;
    for (let e = el; e; e = parentOf(e), cs = e && getComputedStyle(e)) {
      if (cs.position === 'fixed') break;
      const p = parentOf(e);
      if (!p) break;
      if (cs.direction === 'rtl' && p.scrollWidth > p.clientWidth) x = 1;
      x += p.scrollLeft;
      y += p.scrollTop;
    }
    return x <= 0 || y <= 0;
  };

  const lengths = (s, whole) => s.trim().split(/\s+/).map((v) => parseFloat(v) * (v.endsWith('%') ? whole / 100 : 1));

  // clipsAll reads the shapes that are used to hide: inset, rect, circle, ellipse, polygon.
  const clipsAll = (shape, box) => {
    const m = /^(inset|xywh|rect|circle|ellipse|polygon)\(([^)]*)\)/.exec(shape);
    if (!m) return false;
    const body = m[2].split(' round ')[0];
    if (m[1] === 'inset') {
      const v = lengths(body, box.height), w = lengths(body, box.width);
      const top = v[0], right = w[1] ?? w[0], bottom = v[2] ?? v[0], left = w[3] ?? w[1] ?? w[0];
      return top + bottom >= box.height || left + right >= box.width;
    }
    if (m[1] === 'circle' || m[1] === 'ellipse') return /^0(?:px|%)?(?:\s|$)/.test(body.trim());
    if (m[1] === 'polygon') return area(body.replace(/^(?:evenodd|nonzero),/, ''), box) < 1;
    const v = lengths(body, 100);
    return m[1] === 'xywh' ? v[2] <= 0 || v[3] <= 0 : v[2] <= v[0] || v[1] <= v[3];
  };

  const area = (body, box) => {
    const pts = body.split(',').map((p) => [lengths(p, box.width)[0], lengths(p, box.height)[1]]);
    let a = 0;
    for (let i = 0; i < pts.length; i++) {
      const [x, y] = pts[i], [u, v] = pts[(i + 1) % pts.length];
      a += x * v - u * y;
    }
    return Math.abs(a) / 2;
  };

  const clipped = (cs, el, box) => {
    if (cs.clipPath !== 'none' && clipsAll(cs.clipPath, box)) return true;
    if (cs.clip !== 'auto' && (cs.position === 'absolute' || cs.position === 'fixed')) {
      const v = (/rect\(([^)]*)\)/.exec(cs.clip) || ['', ''])[1].split(/,\s*|\s+/).map(parseFloat);
      if (v[2] - v[0] <= 1 || v[1] - v[3] <= 1) return true;
    }
    // A box of no size that clips its content: collapsed panels and the usual
    // "for screen readers only" class.
    return cs.overflowX !== 'visible' && cs.display !== 'inline' && (el.clientWidth <= 1 || el.clientHeight <= 1);
  };

  // P.styles.test says how a candidate hides: 0 not, 1 with all it holds, 2 only text in
  // its own font size (of zero), 3 with all it holds, but a control in it can be seen.
  const test = (el) => {
    const cs = getComputedStyle(el);
    const box = el.getBoundingClientRect();
    if (cs.contentVisibility === 'hidden' || clipped(cs, el, box)) return 1;
    if (cs.display !== 'contents') {
      if ((box.width === 0 && el.offsetWidth > 0) || (box.height === 0 && el.offsetHeight > 0)) return 1; // scaled to nothing
      if ((box.right <= 0 || box.bottom <= 0) && offPage(el, cs, box)) return 1;
    }
    const indent = parseFloat(cs.textIndent);
    if (indent < 0 && -indent >= Math.max(box.width, 100)) return 3; // text moved out, for a picture in its place
    return cs.fontSize === '0px' ? 2 : 0;
  };

  P.styles = {of, lasting, test, parentOf};
})();
