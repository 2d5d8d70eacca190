// What all kinds use: how the page looks, and elements that look like it. Styles are set
// through the object model, which no content policy forbids, and text as text.
const rgb = (s) => (s.match(/[\d.]+/g) || []).map(Number);
const light = (s) => { const [r, g, b] = rgb(s); return (0.299 * r + 0.587 * g + 0.114 * b) / 255; };
const opaque = (s) => { const c = rgb(s); return c.length >= 3 && (c.length < 4 || c[3] > 0.5); };
const styleOf = (e) => getComputedStyle(e);
const shown = (e) => { const r = e.getBoundingClientRect(); return r.width > 4 && r.height > 4 && e.checkVisibility({visibilityProperty: true}); };
const inView = (e) => { const r = e.getBoundingClientRect(); return shown(e) && r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth; };

// The page's own colours and type, so that what is added belongs to it.
const look = (() => {
  const body = document.body, own = styleOf(body);
  let ground = [own.backgroundColor, styleOf(document.documentElement).backgroundColor].find(opaque);
  if (!ground) ground = matchMedia('(prefers-color-scheme: dark)').matches && /dark/.test(own.colorScheme) ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
  const dark = light(ground) < 0.5;
  let accent = dark ? 'rgb(138, 180, 248)' : 'rgb(26, 92, 200)', on = dark ? 'rgb(10, 20, 40)' : 'rgb(255, 255, 255)', round = '8px';
  for (const b of document.querySelectorAll('button, a[class*=btn], a[class*=button], input[type=submit]')) {
    const s = styleOf(b);
    if (!shown(b) || b.disabled || !opaque(s.backgroundColor) || Math.abs(light(s.backgroundColor) - light(ground)) < 0.25) continue;
    accent = s.backgroundColor; on = s.color; round = s.borderTopLeftRadius;
    break;
  }
  return {
    dark, accent, on, round: parseFloat(round) > 24 ? '24px' : round, font: own.fontFamily, ground,
    paper: dark ? 'rgb(34, 38, 42)' : 'rgb(255, 255, 255)', ink: dark ? 'rgb(236, 239, 241)' : 'rgb(32, 36, 40)',
    soft: dark ? 'rgb(170, 178, 184)' : 'rgb(94, 102, 110)', line: dark ? 'rgb(66, 72, 78)' : 'rgb(216, 221, 226)',
  };
})();

const css = (e, s) => { for (const k in s) e.style.setProperty(k, s[k]); return e; };
const make = (tag, attributes, styles, ...children) => {
  const e = document.createElement(tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  css(e, {'box-sizing': 'border-box', margin: '0', font: 'inherit', color: 'inherit', ...styles});
  e.append(...children);
  return e;
};
let serial = 0;
const fresh = (word) => word + '-' + ((F.pick % 4096) * 7 + ++serial).toString(36);

const button = (text, primary, press) => {
  const b = make('button', {type: 'button'}, {
    padding: '10px 16px', 'border-radius': look.round, cursor: 'pointer', 'font-weight': '600', 'font-size': '15px', 'line-height': '1.3', width: 'auto',
    border: primary ? '1px solid ' + look.accent : '1px solid ' + look.line,
    background: primary ? look.accent : 'transparent', color: primary ? look.on : look.ink,
  }, text);
  b.addEventListener('click', (e) => { e.stopPropagation(); press(e); });
  return b;
};
const cross = (name, press) => {
  const b = make('button', {type: 'button', 'aria-label': name}, {
    background: 'transparent', border: '0', padding: '4px 10px', 'font-size': '22px', 'line-height': '1', color: look.soft, cursor: 'pointer', 'border-radius': '6px',
  }, '\u00d7');
  b.addEventListener('click', (e) => { e.stopPropagation(); press(e); });
  return b;
};

// stand puts e into the page and keeps it there until it is closed: a page that draws
// itself anew takes nothing away.
const stand = (e) => {
  let open = true, again = 0;
  const put = () => { if (open && !e.isConnected && again++ < 50) document.body.append(e); };
  const watch = new MutationObserver(put);
  put();
  watch.observe(document.documentElement, {childList: true, subtree: true});
  return () => { open = false; watch.disconnect(); e.remove(); };
};
const base = {'font-family': look.font, 'font-size': '15px', 'line-height': '1.5', 'text-align': 'left', color: look.ink, 'letter-spacing': 'normal'};
const shadow = look.dark ? '0 8px 40px rgba(0,0,0,.6)' : '0 8px 40px rgba(20,30,40,.22)';
const choose = (list) => list[F.pick % list.length];
const words = (sets) => choose(sets[F.texts.words] || sets.common);
const later = (f) => { if (F.numbers.delay > 0) setTimeout(f, F.numbers.delay); else f(); };
const kinds = {};
