// Finding the element that an action names, by bid or by selector.

class Miss extends Error {
  constructor(kind, message) { super(message); this.kind = kind; }
}
P.Miss = Miss;

// P.scopes are the trees in which a selector is tried: documents and shadow roots, the
// main document first.
P.scopes = () => {
  const out = [document];
  for (let i = 0; i < out.length; i++) {
    const s = out[i];
    const walker = (s.ownerDocument || s).createTreeWalker(s, 1);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
      const root = P.shadow(n);
      if (root) out.push(root);
      if (n.localName === 'iframe' || n.localName === 'frame') { const d = n.contentDocument; if (d) out.push(d); }
    }
  }
  return out;
};

// P.shown says whether an element takes up room that a user could see.
P.shown = (el) => {
  if (!el.checkVisibility || !el.checkVisibility({visibilityProperty: true})) return false;
  if (el.localName === 'option' || el.localName === 'optgroup') return P.shown(el.closest('select') || el.parentElement);
  const r = el.getBoundingClientRect();
  if (r.width > 0 && r.height > 0) return true;
  // A box of no size may still show what overflows it.
  for (const c of el.children) if (P.shown(c)) return true;
  return false;
};

const css = (scope, sel) => {
  try { return [...scope.querySelectorAll(sel)]; } catch (e) {
    throw new Miss('invalid_selector', `${JSON.stringify(sel)} is not a CSS selector` + advice(sel));
  }
};
const advice = (sel) => {
  if (/[#.]\d/.test(sel)) return '; an id that starts with a digit is written [id="841"]';
  if (/^\/\/|^xpath/.test(sel)) return '; XPath is not supported: use CSS, text=... or role=button[name="..."]';
  return '; use CSS, text=... or role=button[name="..."]';
};

const norm = (s) => s.replace(/\s+/g, ' ').trim();
const textOf = (el) => el.localName === 'input' && /^(submit|button|reset)$/.test(el.type) ? el.value : el.textContent;
const skip = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'html', 'body']);

// byText gives the innermost elements whose text matches: text=Save anywhere in it and
// in any case, text="Save" exactly.
const byText = (scope, arg) => {
  const quoted = /^(["'])([\s\S]*)\1$/.exec(arg);
  const want = norm(quoted ? quoted[2] : arg);
  if (!want) throw new Miss('invalid_selector', 'text= needs a text, for example text=Save');
  const low = want.toLowerCase();
  const test = quoted ? (t) => t === want : (t) => t.toLowerCase().includes(low);
  const found = [];
  for (const el of css(scope, '*')) {
    if (skip.has(el.localName) || !test(norm(textOf(el)))) continue;
    while (found.length && found[found.length - 1].contains(el)) found.pop();
    found.push(el);
  }
  if (quoted) return found;
  const whole = found.filter((el) => norm(textOf(el)).toLowerCase() === low);
  return whole.length ? whole : found;
};

// byRole looks the element up in the observation, so that it matches what the agent has read.
const byRole = (arg) => {
  const m = /^([a-z]+)\s*((?:\[[^\]]*\])*)$/i.exec(arg.trim());
  if (!m) throw new Miss('invalid_selector', 'write role=button or role=button[name="Save"]');
  let name = null, exact = true;
  for (const part of m[2].match(/\[[^\]]*\]/g) || []) {
    const a = /^\[\s*name\s*=\s*(["'])([\s\S]*)\1\s*(i)?\s*\]$/.exec(part);
    if (!a) throw new Miss('invalid_selector', `role= knows only [name="..."], not ${part}`);
    name = norm(a[2]);
    exact = !a[3];
  }
  const low = name === null ? '' : name.toLowerCase();
  return P.listed(m[1].toLowerCase()).filter(({name: n}) => name === null || (exact ? norm(n) === name : norm(n).toLowerCase().includes(low))).map((x) => x.el);
};

const matches = (sel) => {
  const m = /^(text|role|css)=([\s\S]*)$/.exec(sel);
  if (m && m[1] === 'role') return byRole(m[2]);
  const one = m && m[1] === 'text' ? (scope) => byText(scope, m[2]) : (scope) => css(scope, m ? m[2] : sel);
  const found = one(document);
  if (found.length) return found;
  for (const scope of P.scopes()) {
    if (scope === document) continue;
    found.push(...one(scope));
  }
  return found;
};

// P.find gives the one element that is meant, or throws a Miss. Elements that cannot be
// seen do not make a selector ambiguous as long as one can be.
P.find = (t) => {
  if (t.x !== undefined) return P.hit(t.x, t.y) || document.documentElement;
  if (t.bid !== undefined) {
    const el = P.byBid(t.bid);
    if (el) return el;
    if (P.wasBid(t.bid)) throw new Miss('stale', `element [${t.bid}] is no longer in the page; read the new observation for its successor`);
    throw new Miss('not_found', `there is no element [${t.bid}] in this page; take a bid from the last observation`);
  }
  let found = matches(t.selector);
  if (found.length > 1) {
    const seen = found.filter(P.shown);
    if (seen.length) found = seen;
  }
  if (found.length === 1) return found[0];
  if (found.length === 0) throw new Miss('not_found', `nothing in the page matches ${JSON.stringify(t.selector)}`);
  const list = found.slice(0, 8).map(P.label).join(', ') + (found.length > 8 ? ', ...' : '');
  throw new Miss('ambiguous', `${JSON.stringify(t.selector)} matches ${found.length} elements: ${list}; name one by its bid`);
};
