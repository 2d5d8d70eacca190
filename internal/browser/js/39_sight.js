// Sight: what the walk asks layout and styles. Each question takes an element and gives a
// plain value, so that it can be asked again to learn whether anything has changed.
(() => {
  const S = P.styles;

  const DIM = 4096; // the flag of a place where visibility or opacity may be in play

  const all = {visibilityProperty: true, opacityProperty: true};
  const byOpacity = {opacityProperty: true}, byVisibility = {visibilityProperty: true};

  // look says what can be seen of an element:
  // 0 nothing of it, 1 itself, 2 it is transparent, 3 not itself but perhaps what it holds.
  // A width is the cheapest proof of being rendered; it says nothing of what closed details
  // and content-visibility skip, which the walk does not enter, and of visibility and opacity.
  const look = (el, flags) => {
    if (!(flags & DIM) && el.offsetWidth > 0) return 1;
    if (el.checkVisibility(all)) return 1;
    if (el.checkVisibility()) {
      if (!el.checkVisibility(byVisibility)) return 3;
      return el.checkVisibility(byOpacity) ? 1 : 2;
    }
    const cs = getComputedStyle(el); // display: contents has no box, but what it holds has
    if (cs.display !== 'contents') return 0;
    const up = S.parentOf(el);
    const v = up ? look(up, DIM) : 1;
    return v === 0 ? 0 : cs.visibility !== 'visible' ? 3 : v === 3 ? 1 : v;
  };

  const inline = (el) => {
    const d = getComputedStyle(el).display;
    return d === 'inline' || d === 'contents' || d === 'ruby';
  };

  // scrolls gives "120 of 800 px" for a box with more inside than it shows.
  const scrolls = (el) => {
    const hid = el.scrollHeight - el.clientHeight, wide = el.scrollWidth - el.clientWidth;
    if (hid <= 1 && wide <= 1) return '';
    const cs = getComputedStyle(el);
    const y = hid > 1 && /auto|scroll/.test(cs.overflowY), x = wide > 1 && /auto|scroll/.test(cs.overflowX);
    if (!x && !y) return '';
    const part = [];
    if (y) part.push(Math.round(el.scrollTop) + ' of ' + hid + ' px');
    if (x) part.push(Math.round(el.scrollLeft) + ' of ' + wide + ' px sideways');
    return part.join(', ');
  };

  const maxString = 10000; // characters of one name, value or text

  const shorten = (s) => s.length <= maxString ? s : s.slice(0, maxString) + '… (+' + (s.length - maxString) + ' characters)';

  // closed elements have nothing inside that is read as text.
  const closed = (tag, role) => tag === 'input' || tag === 'textarea' || tag === 'select' || tag === 'img' || tag === 'canvas' || tag === 'video' ||
    tag === 'audio' || tag === 'embed' || tag === 'object' || tag === 'progress' || tag === 'meter' || (tag === 'svg' && role === 'image');

  const quote = (s) => {
    s = s.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/\t/g, '\\t').replace(/\r/g, '\\r');
    return s.includes("'") ? (s.includes('"') ? "'" + s.replace(/'/g, "\\'") + "'" : '"' + s + '"') : "'" + s + "'";
  };

  P.text = {quote, shorten, maxString};

  const deepActive = () => {
    let a = document.activeElement;
    for (;;) {
      if (!a) return null;
      const root = P.shadow(a);
      const d = !root && P.registry.isFrame(a) ? a.contentDocument : null;
      const b = (root && root.activeElement) || (d && d.activeElement);
      if (!b || (d && b === d.body)) return a;
      a = b;
    }
  };

  P.sight = {
    DIM, look, inline, scrolls, closed, deepActive,
    lookPlain: (el) => look(el, 0),
    lookDim: (el) => look(el, DIM),
    tiny: (el) => getComputedStyle(el).fontSize === '0px',
    points: (el) => getComputedStyle(el).cursor === 'pointer',
  };
})();
