// Lines: what the walk recorded, put in order and written out.
(() => {
  const N = P.names;

  const cells = new Set(['cell', 'gridcell', 'columnheader', 'rowheader']);
  const plain = new Set(['StaticText', 'image', 'link', 'button', 'checkbox', 'radio', 'switch', 'textbox', 'searchbox', 'combobox', 'spinbutton', 'slider', 'generic', 'progressbar', 'meter', 'menuitem']);

  const kids = (rec) => rec.list ? rec.list.filter((k) => !k.drop) : [];

  // lift drops a record and puts its only child in its place.
  const lift = (rec, k) => {
    rec.drop = true;
    k.up = rec.up;
    if (rec.up) rec.up.list[rec.up.list.length - 1] = k; // rec was the latest child
  };

  // drop leaves a record out; what is counted is what will be written.
  const drop = (w, k) => { k.drop = true; w.size -= k.name.length + 16; };

  // nameIt gives a record the name that its content makes.
  const nameIt = (w, rec, c) => {
    rec.name = P.text.shorten(N.tidy(w.chunks.slice(c.chunk).join(''))) || N.after(rec.el, rec.tag);
    w.size += rec.name.length;
  };

  // settle ends a record once all below it is known: names it, drops what would only
  // repeat its name, and folds what says the same in fewer lines.
  const settle = (w, rec, c) => {
    if (rec.fromContent) nameIt(w, rec, c);
    const from = rec.index + 1;
    if (from === w.recs.length) return;
    const role = rec.role;
    if (role === 'row') { row(w, rec, from); return; }
    if (rec.fromContent || P.roles.interactive.has(role)) repeated(w, rec, from);
    if (rec.el.localName === 'iframe' || rec.el.localName === 'frame') return;
    const list = kids(rec);
    if (list.length !== 1) {
      if (rec.given) for (const k of list) if (!k.el && !k.mark && rec.name.includes(k.name)) drop(w, k);
      return;
    }
    const k = list[0];
    if (!k.el) { // only text: it is the name, unless there is another
      if (k.mark) return;
      if (rec.name === '') { rec.name = k.name; k.drop = true; } else if (rec.name.includes(k.name)) drop(w, k);
      return;
    }
    if (rec.name !== '' || rec.attrs.includes('focused')) return;
    if ((role === 'listitem' || role === 'group') && rec.attrs === '') lift(rec, k);
    else if (role === 'generic' && rec.attrs === ', clickable' && P.roles.interactive.has(k.role)) lift(rec, k);
  };

  const repeated = (w, rec, from) => {
    for (let i = from; i < w.recs.length; i++) {
      const k = w.recs[i];
      if (k.drop) continue;
      if (!k.el) {
        if (rec.name.includes(k.name) || (rec.name && !/[\p{L}\p{N}]/u.test(k.name))) drop(w, k);
      } else if (k.role === 'image' && !k.clickable && rec.name.includes(k.name)) drop(w, k);
    }
  };

  // row writes a row of simple cells as one line, "a | b | c", with the controls of its
  // cells below; a row that holds lists, headings or tables keeps its cells as lines.
  const row = (w, rec, from) => {
    for (let i = from; i < w.recs.length; i++) {
      const k = w.recs[i];
      if (!k.drop && !(plain.has(k.role) || (cells.has(k.role) && k.up === rec))) return;
    }
    const texts = [], stay = [];
    let header = true, head = false;
    for (let i = from; i < w.recs.length; i++) {
      const k = w.recs[i];
      if (cells.has(k.role)) {
        texts.push(k.name);
        if (k.role !== 'columnheader') header = false;
        if (k.attrs === '') drop(w, k);
        else if (k.name === '') stay.push([k, texts.length - 1]);
        head = k.role === 'columnheader';
        continue;
      }
      if (k.drop) continue;
      if (!texts.length) texts.push('');
      const at = texts.length - 1;
      const says = k.role === 'StaticText' || k.role === 'link' || k.role === 'image' || k.role === 'generic' || (head && k.role === 'button') ? k.name : '';
      if (says) texts[at] += (texts[at] ? ' ' : '') + says;
      if (!k.el || k.role === 'image') drop(w, k);
    }
    for (const [k, at] of stay) k.name = texts[at];
    while (texts.length && texts[texts.length - 1] === '') texts.pop();
    if (texts.length) { rec.name = texts.join(' | '); w.size += rec.name.length; }
    if (header && texts.length) rec.attrs += ', header';
  };

  // said is the line of a record. One that comes from a cell has it from the last look.
  const said = (r) => {
    const l = r.said;
    if (l !== null && l.d === r.d && l.name === r.name && l.value === r.value && l.attrs === r.attrs) return l.text;
    let s = '\t'.repeat(Math.min(r.d, 40));
    if (r.el) {
      r.bid = P.bid(r.el);
      s += '[' + r.bid + '] ';
    }
    s += r.role + ' ' + P.text.quote(r.name) + (r.value ? ' value=' + P.text.quote(r.value) : '') + r.attrs;
    if (s.includes('\n')) s = s.replaceAll('\n', '\\n'); // of an attribute: no page writes lines of its own
    r.said = {d: r.d, name: r.name, value: r.value, attrs: r.attrs, text: s};
    return s;
  };

  // write makes the lines, names them with bids in document order, and keeps the records
  // that got one.
  const write = (w, max, depth) => {
    const lines = [], kept = [];
    let size = 0;
    for (const r of w.recs) {
      if (r.drop) { r.d = r.up ? r.up.d : depth - 1; continue; }
      r.d = r.up ? r.up.d + 1 : depth;
      if (r.el) {
        r.line = lines.length;
        kept.push(r);
      }
      const s = said(r);
      size += s.length + 1;
      if (size > max) {
        w.cut = w.cut || 'size';
        if (!r.el) lines.push(s.slice(0, s.length + max - size) + '…');
        break;
      }
      lines.push(s);
    }
    return {lines, kept};
  };

  const field = (s) => s.replace(/[\t\n\r\\]/g, (c) => c === '\t' ? '\\t' : c === '\n' ? '\\n' : c === '\r' ? '\\r' : '\\\\');

  // offset of the content of a frame on the screen of the top one.
  const frameBox = (f) => {
    if (f.box) return f.box;
    const o = frameBox(f.up), h = f.host, r = h.getBoundingClientRect(), cs = h.ownerDocument.defaultView.getComputedStyle(h);
    const x = o.x + r.left + h.clientLeft + parseFloat(cs.paddingLeft), y = o.y + r.top + h.clientTop + parseFloat(cs.paddingTop);
    f.box = {x, y, left: Math.max(o.left, x), top: Math.max(o.top, y), right: Math.min(o.right, o.x + r.right), bottom: Math.min(o.bottom, o.y + r.bottom)};
    return f.box;
  };

  // foreign lists the frames whose own worlds have to be asked: after which line their
  // text goes, and what they need to know to go on.
  const foreign = (kept) => kept.filter((r) => r.child !== undefined).map((r) => {
    const path = [r.child];
    for (let f = r.frame; f.host; f = f.up) {
      const w = f.host.ownerDocument.defaultView;
      let i = 0;
      while (w[i] !== f.host.contentWindow) i++;
      path.unshift(i);
    }
    const b = frameBox({host: r.el, up: r.frame});
    return {bid: r.bid, line: r.line, depth: r.d + 1, path, x: b.x, y: b.y, clip: [b.left, b.top, b.right, b.bottom]};
  });

  const table = (kept) => {
    const rows = [];
    for (const r of kept) {
      const f = frameBox(r.frame), b = r.el.getBoundingClientRect();
      const x = f.x + b.left, y = f.y + b.top;
      const states = r.states ? r.states.join(',') : '';
      const off = r.states && r.states.includes('disabled');
      const inter = !off && (r.clickable || P.roles.interactive.has(r.role));
      const inView = b.width > 0 && b.height > 0 && x < f.right && x + b.width > f.left && y < f.bottom && y + b.height > f.top;
      rows.push(r.bid + '\t' + r.role + '\t' + field(r.name) + '\t' + field(r.value) + '\t' + states + '\t' +
        Math.round(x) + '\t' + Math.round(y) + '\t' + Math.round(b.width) + '\t' + Math.round(b.height) + '\t' + r.tag + '\t' + ((inter ? 1 : 0) | (inView ? 2 : 0)));
    }
    return rows;
  };

  const cutLine = {
    size: (max) => '(cut: the text reached its limit of ' + max + ' bytes; what follows on the page is not shown)',
    nodes: () => '(cut: the page has more nodes than are read; what follows on the page is not shown)',
    frames: () => '(cut: iframes were nested too deep to be read)',
  };

  // fit cuts text at the last line that ends within max bytes of UTF-8.
  const fit = (text, max) => {
    if (text.length * 3 <= max) return text;
    const buf = new Uint8Array(max);
    const {read} = new TextEncoder().encodeInto(text, buf);
    if (read === text.length) return text;
    const end = text.lastIndexOf('\n', read);
    return end > read - 500 ? text.slice(0, end) : text.slice(0, read).toWellFormed() + '…';
  };

  const clean = (s) => s.toWellFormed().replaceAll('\u0000', '\ufffd');

  // scrolled says how much of the document is in view, when it is not all.
  const scrolled = () => {
    const e = document.scrollingElement || document.documentElement;
    if (!e || (e.scrollHeight <= e.clientHeight + 1 && e.scrollWidth <= e.clientWidth + 1)) return '';
    const x = Math.round(e.scrollLeft), y = Math.round(e.scrollTop);
    return '(page of ' + e.scrollWidth + ' x ' + e.scrollHeight + ' px; in view: x ' + x + ' to ' + (x + e.clientWidth) + ', y ' + y + ' to ' + (y + e.clientHeight) + ')';
  };

  const render = (w, opts) => {
    const scroll = scrolled();
    const title = clean(N.tidy(document.title));
    const inner = opts.prefix !== undefined;
    w.root.box = opts.clip ? {x: opts.x, y: opts.y, left: opts.clip[0], top: opts.clip[1], right: opts.clip[2], bottom: opts.clip[3]} : {x: 0, y: 0, left: 0, top: 0, right: innerWidth, bottom: innerHeight};
    const {lines, kept} = write(w, w.max, opts.depth || 1);
    const a = w.active;
    const focused = a && a !== document.body && a !== document.documentElement && (!inner || document.hasFocus()) ? P.bid(a) : '';
    const rows = opts.elements ? table(kept) : [];
    const others = foreign(kept);
    if (!inner && !lines.length) lines.push('');
    if (!inner) lines.unshift('RootWebArea ' + P.text.quote(title) + (focused ? '' : ', focused'));
    const page = {head: null, rows, lines, text: null};
    if (w.cut || lines.reduce((n, l) => n + l.length + 1, 0) * 3 > w.max) {
      const text = clean(lines.join('\n'));
      page.text = fit(text, w.max);
      if (page.text !== text) w.cut = w.cut || 'size';
      page.text += (w.cut ? '\n' + cutLine[w.cut](w.max) : '') + (scroll && !inner ? '\n' + scroll : '');
    } else if (scroll && !inner) lines.push(scroll);
    page.head = {url: location.href, title, focused, truncated: w.cut !== '', elements: rows.length, foreign: others.length ? others : undefined};
    return page;
  };

  const joined = (page, text) => JSON.stringify(page.head) + '\n' + (page.rows.length ? clean(page.rows.join('\n')) + '\n' : '') + text;

  // whole is a page in full.
  const whole = (page) => joined(page, page.text ?? clean(page.lines.join('\n')));

  // last is what the driver was told last: most pages change little from look to look, and
  // on the way to the driver a text is copied, encoded and decoded many times.
  let last = {name: 0, lines: []};

  // answer is a page in full, or, when the driver has kept the answer before this, only the
  // lines that have changed, and how many at both ends have not.
  const answer = (page, opts) => {
    if (!opts.now) return whole(page);
    const {lines} = page, before = last;
    last = {name: page.text === null ? opts.now : 0, lines};
    if (!last.name || !before.name || before.name !== opts.have) return whole(page);
    const old = before.lines;
    const most = Math.min(lines.length, old.length);
    let top = 0, end = 0;
    while (top < most && lines[top] === old[top]) top++;
    while (end < most - top && lines[lines.length - 1 - end] === old[old.length - 1 - end]) end++;
    page.head.kept = {top, end, lines: lines.length};
    return joined(page, clean(lines.slice(top, lines.length - end).join('\n')));
  };

  P.lines = {settle, render, whole, answer};
})();
