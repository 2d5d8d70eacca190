// The observation: one walk over everything that is rendered, light and shadow trees and
// iframes, into records; then one pass over the records into lines.
//
// The walk keeps its own stack (pages nest deeper than the engine's) and asks for layout
// only where the answer cannot be had from the tree: see 37_styles.js. Parts of the page that
// are as they were at the last look are not walked again: see 43_cells.js.
(() => {
  const R = P.roles, N = P.names, S = P.styles, F = P.form, V = P.sight;
  const {quote, shorten, maxString} = P.text, {closed, deepActive} = V;

  const maxFrames = 8;        // iframes inside iframes
  const maxNodes = 400000;    // nodes looked at

  // Flags of a place in the tree; a child starts with those of its parent.
  const CLEAR = 1;      // transparent
  const CLIPPED = 2048; // clipped away, off the page, of no size
  const UNPAINTED = CLEAR | CLIPPED; // rendered, but nothing of it reaches the eye
  const UNNAMED = 2;    // aria-hidden inside the element that is being named
  const AXHIDDEN = 4;   // aria-hidden
  const ATOMIC = 8;     // inside a role that is met as one thing
  const CLICK = 16;     // inside something clickable
  const SECTION = 32;   // inside sectioning content
  const TINY = 64;      // text has font size 0 unless it sets another
  const QUIET = 128;    // text here is known from elsewhere: a label's, an editor's
  const LAYOUT = 256;   // inside a table that is for layout
  const PRE = 512;      // line breaks count
  const INERT = 1024;
  const DIM = V.DIM;    // visibility or opacity may be in play here
  const APART = 8192;   // in an inner document: no cells
  // Attributes that decide something, as bits: one call finds them all.
  const A = {role: 1, 'aria-hidden': 2, 'aria-label': 4, 'aria-labelledby': 8, tabindex: 16, onclick: 32, contenteditable: 64, draggable: 128, title: 256, inert: 512, list: 2048};
  const ARIA = 1024; // some other aria attribute
  const attributes = (el) => {
    let m = 0;
    for (const n of el.getAttributeNames()) m |= A[n] || (n.startsWith('aria-') ? ARIA : 0);
    return m;
  };

  class Walk {
    constructor(max) {
      this.max = max;
      this.recs = [];
      this.chunks = [];   // text since the outermost element being named
      this.run = '';      // text of the line being gathered
      this.runRec = null;
      this.runMark = false;
      this.textEl = null; // element of the latest text
      this.size = 0;
      this.nodes = 0;
      this.cut = '';
      this.stack = [];
      this.depth = -1;
      this.frames = 0;
      this.active = null;
      this.namers = 0;    // open elements that take their name from the chunks
      this.styles = new WeakMap();
      this.cells = null;  // P.cells, when they are in use
      this.looks = [];    // elements that were found to be plainly visible
      this.reads = [];    // whatever else was asked of the page: question, subject, answer
      this.lastLook = -1;
      this.spoils = 0;    // what no cell may hold
      this.top = null;    // styles of the main document
      this.mark = {recs: 0, looks: 0, reads: 0, nodes: 0, size: 0, list: 0, spoils: 0};
    }

    // roomFor says that neither bound will be met by as much more.
    roomFor(nodes, size) { return this.nodes + nodes <= maxNodes && this.size + size <= 1.1 * this.max; }

    // asked notes a question whose answer may change though the document does not.
    asked(question, subject, answer) {
      if (this.cells) this.reads.push(question, subject, answer);
      return answer;
    }

    look(el, flags) {
      const v = V.look(el, flags);
      if (this.cells) {
        if (v === 1 && !(flags & DIM)) this.seen(el);
        else this.reads.push(flags & DIM ? V.lookDim : V.lookPlain, el, v);
      }
      return v;
    }

    // push enters an element (or the root of a frame or shadow tree).
    push(el, first, rec, flags, frame, style) {
      const c = this.stack[++this.depth] || (this.stack[this.depth] = {});
      c.el = el;
      c.next = first;
      c.list = null;
      c.at = 0;
      c.rec = rec;
      c.own = null;       // the record of this very element
      c.chunk = this.chunks.length;
      c.flags = flags;
      c.frame = frame;
      c.style = style;
      c.seen = 0;         // what look said, 0 when not asked
      c.block = false;
      c.leave = 0;
      c.cell = false;
      c.asked = this.lastLook; // where its own look is noted, if it is
      c.sure = false;     // something in it was found to be visible
      this.lastLook = -1;
      return c;
    }

    // seen notes an element that is plainly visible. That answers for those around it too,
    // which need not be asked again.
    seen(el) {
      for (let i = this.depth; i >= 0; i--) {
        const c = this.stack[i];
        if (c.el === el) { if (c.sure) return; continue; }
        if (c.sure) break;
        c.sure = true;
        if (c.asked >= 0) this.looks[c.asked] = null;
      }
      this.lastLook = this.looks.push(el) - 1;
    }

    doc(d, rec, flags, frame) {
      const root = d.body || d.documentElement;
      if (!root) return;
      let first = root;
      if (root.localName === 'frameset') first = root.firstChild;
      const style = d === document && this.cells ? this.cells.candidates(d) : S.of(d);
      if (d === document) {
        this.top = style;
        if (this.cells) this.cells.style(style);
      }
      const c = this.push(d, null, rec, flags, frame, style);
      c.list = root === first ? [root] : [...root.childNodes];
      c.seen = 1;
    }

    loop() {
      while (this.depth >= 0) {
        const c = this.stack[this.depth];
        let n;
        if (c.list) n = c.list[c.at++] || null;
        else { n = c.next; if (n) c.next = n.nextSibling; }
        if (!n) { this.pop(c); continue; }
        if (++this.nodes > maxNodes || this.size > 1.1 * this.max + 1000) { this.stop(); continue; }
        const t = n.nodeType;
        if (t === 3) this.text(n.data, c);
        else if (t === 1) this.enter(n, c);
      }
    }

    // stop makes every open element end where it is.
    stop() {
      this.cut = this.nodes > maxNodes ? 'nodes' : 'size';
      this.spoils++;
      for (let i = 0; i <= this.depth; i++) { const c = this.stack[i]; c.next = null; c.list = null; }
    }

    // gone leaves the outermost element around c that is not rendered.
    gone(c) {
      let i = this.depth;
      c.next = null; c.list = null;
      while (i > 0 && this.stack[i - 1].seen === 0 && this.stack[i - 1].el.nodeType === 1 && this.look(this.stack[i - 1].el, DIM) === 0) {
        i--;
        this.stack[i].next = null; this.stack[i].list = null;
      }
    }

    text(data, c) {
      let t = data;
      if (!(c.flags & PRE)) {
        if (t.length > maxString) t = shorten(t);
        t = t.replace(/\s+/g, ' ');
        if (t === ' ') {
          if (this.run && !this.run.endsWith(' ')) this.run += ' ';
          if (this.namers) this.chunks.push(' ');
          return;
        }
      } else if (t.length > maxString) t = shorten(t);
      if (!t) return;
      if (c.seen === 0) {
        c.seen = this.look(c.el, c.flags);
        c.asked = this.lastLook;
        if (c.seen === 0) { this.gone(c); return; }
        if (c.seen === 2) c.flags |= CLEAR;
      }
      if (c.seen === 3) return;
      if (c.flags & TINY && this.asked(V.tiny, c.el, V.tiny(c.el))) return;
      if (this.textEl !== c.el && this.textEl) this.join(t, c.el);
      this.textEl = c.el;
      if (this.namers && !(c.flags & UNNAMED)) this.chunks.push(t);
      if (c.flags & (UNPAINTED | QUIET)) return;
      const mark = (c.flags & AXHIDDEN) !== 0;
      if (this.run && (this.runRec !== c.rec || this.runMark !== mark)) this.flush();
      this.runRec = c.rec;
      this.runMark = mark;
      this.run += t;
    }

    // join puts a space between texts of two elements that stand apart on the screen
    // without one in the source: boxes in a flex row, badges. Rare, so it may cost a style.
    join(t, el) {
      const last = this.chunks.length ? this.chunks[this.chunks.length - 1] : this.run;
      if (!last || last.endsWith(' ') || last.endsWith('\n') || t.startsWith(' ')) return;
      const from = this.textEl;
      const inline = (e) => this.asked(V.inline, e, V.inline(e));
      if ((from.contains(el) || inline(from)) && (el.contains(from) || inline(el))) return;
      if (this.namers) this.chunks.push(' ');
      if (this.run) this.run += ' ';
    }

    flush() {
      const s = this.run.trim();
      this.run = '';
      if (!s) return;
      this.size += s.length + 16;
      this.add({el: null, role: 'StaticText', name: s, value: '', attrs: this.runMark ? ', hidden_from_ax' : '', up: this.runRec, drop: false, d: 0, list: null, mark: this.runMark, index: this.recs.length, nameThen: '', dropThen: false, outer: false, frame: null, said: null, choices: ''});
    }

    add(rec) {
      this.recs.push(rec);
      if (rec.up) (rec.up.list || (rec.up.list = [])).push(rec);
    }

    line() {
      this.flush();
      if (this.namers) this.chunks.push(' ');
      this.textEl = null;
    }

    enter(el, up) {
      const tag = el.localName;
      if (R.skipped.has(tag)) return;
      if (tag === 'br') { if (up.flags & PRE) { this.run += '\n'; } else this.text(' ', up); this.textEl = null; return; }
      this.lastLook = -1;
      const at = el.hasAttributes() ? attributes(el) : 0;
      let flags = up.flags;
      const explicit = at & A.role ? el.getAttribute('role') : null;
      let role = R.roleOf(el, tag, explicit, (flags & SECTION) !== 0);
      if (at & A.list) this.asked(F.roleOf, el, F.roleOf(el));
      if (role === '') return;
      if (at & A['aria-hidden'] && el.getAttribute('aria-hidden') === 'true') flags |= AXHIDDEN | UNNAMED;
      if (at & A.inert) flags |= INERT;
      if (R.sectioning.has(tag)) flags |= SECTION;
      if (flags & LAYOUT && (role === 'row' || role === 'cell' || role === 'columnheader') && !explicit) role = 'generic';
      if (tag === 'table') flags = role === 'generic' ? flags | LAYOUT : flags & ~LAYOUT;
      if (tag === 'pre') flags |= PRE;
      const block = R.block.has(tag);
      if (block) this.line();
      const celled = block && this.cells !== null && this.namers === 0 && up.style === this.top && !(flags & APART);
      if (celled) this.begin(up);
      if (up.style.hide.size && up.style.hide.has(el)) {
        const t = this.asked(S.test, el, S.test(el));
        if (t === 2) flags |= TINY;
        else if (t === 1) flags |= CLIPPED;
        else if (t === 3) flags |= QUIET;
      }
      if (up.style.dim.size && up.style.dim.has(el)) flags |= DIM;
      if (celled && this.cells.replay(this, el, flags, up)) return;
      const o = this.role(el, tag, at, role, flags, up);
      if (o === null) { // not rendered
        if (block) this.textEl = null;
        return;
      }
      this.inside(el, tag, o, up, block, celled ? flags : -1);
    }

    // begin notes where the walk stands at an element that may become a cell.
    begin(up) {
      const m = this.mark;
      m.recs = this.recs.length; m.looks = this.looks.length; m.reads = this.reads.length;
      m.nodes = this.nodes; m.size = this.size; m.spoils = this.spoils;
      m.list = up.rec && up.rec.list ? up.rec.list.length : 0;
    }

    // role settles what the element is and makes its record. The answer holds the flags
    // for its content, the record or null, and what look said (0 when not asked).
    role(el, tag, at, role, flags, up) {
      const editor = at & A.contenteditable && editing(el);
      if (editor && role === 'generic') role = 'textbox';
      if (role === 'region?' || role === 'form?') {
        role = at & (A['aria-label'] | A['aria-labelledby'] | A.title) ? role.slice(0, -1) : 'generic';
      }
      if (tag === 'svg' && !(at & (A.role | A['aria-label'] | A['aria-labelledby'])) && !svgTitle(el)) role = 'generic';
      let clickable = false;
      if (!R.interactive.has(role) && !(flags & CLICK) && tag !== 'label' && tag !== 'body' && tag !== 'html') {
        clickable = (at & (A.onclick | A.tabindex | A.draggable) && touches(el, at)) || (up.style.point.size > 0 && up.style.point.has(el) && !el.shadowRoot && this.asked(V.points, el, V.points(el)));
      }
      const scroller = up.style.scroll.size > 0 && up.style.scroll.has(el) && this.asked(V.scrolls, el, V.scrolls(el));
      let label = null;
      if (tag === 'label') {
        label = F.label(el, up.style.hide);
        this.asked(F.control, el, el.control);
        this.asked(P.cells.relabel, el, F.written(label));
      }
      const named = role === 'generic' && at & (A['aria-label'] | A['aria-labelledby']);
      let seen = 0;
      if (role === 'generic' && !clickable && !scroller && !named && !(label && label.stands)) {
        if (label && label.named) flags |= QUIET;
        return {flags, rec: null, seen, role, editor: false};
      }
      seen = this.look(el, flags);
      if (seen === 0) return null;
      if (seen === 2) flags |= CLEAR;
      if (seen === 3) return {flags, rec: null, seen, role: 'generic', editor: false};
      if (flags & CLIPPED || (flags & CLEAR && !(F.isControl(tag) && this.asked(F.reachable, el, F.reachable(el))))) return {flags, rec: null, seen, role, editor: false};
      if (role === 'Iframe' && !(el.clientWidth > 1 && el.clientHeight > 1)) { this.spoils++; return null; }
      if (flags & ATOMIC && !R.interactive.has(role)) {
        if (role === 'image' && this.namers && !(flags & UNNAMED)) this.chunks.push(' ', this.before(el, tag, at), ' ');
        return {flags, rec: null, seen, role, editor: false};
      }
      const rec = this.record(el, tag, at, role, flags, up, {clickable, scroller, label, editor});
      if (clickable || R.interactive.has(rec.role)) flags |= CLICK;
      if ((label && label.named) || editor) flags |= QUIET;
      if (rec.fromContent) flags &= ~UNNAMED;
      if (R.atomic.has(rec.role)) flags |= ATOMIC;
      return {flags, rec, seen, role: rec.role, editor};
    }

    record(el, tag, at, role, flags, up, x) {
      this.flush();
      if (x.label && x.label.stands) role = x.label.role;
      const fromContent = R.fromContent.has(role);
      let name = x.label && x.label.stands ? '' : this.before(el, tag, at);
      const given = name !== '';
      if (!name && !fromContent && role !== 'generic') name = N.after(el, tag);
      const rec = {
        el, role, tag, name, given, fromContent: fromContent && !given, value: '', attrs: '', up: up.rec, drop: false, d: 0, list: null,
        states: null, frame: up.frame, clickable: x.clickable, mark: false, index: this.recs.length, nameThen: '', dropThen: false, outer: false,
        said: null, choices: '',
      };
      const of = x.label && x.label.stands ? x.label.control : el;
      F.state(rec, of, of.localName, of !== el || (at & ARIA) !== 0, x.editor);
      if (x.editor) this.spoils++;
      if (F.live.has(of.localName)) this.asked(F.stateOf, {el: of, role, name, aria: of !== el || (at & ARIA) !== 0, choices: rec.choices}, F.told(rec));
      if (el === this.active) F.add(rec, 'focused');
      if (x.clickable) F.add(rec, 'clickable');
      if (x.scroller) rec.attrs += ', scrolled=' + quote(x.scroller);
      if (flags & AXHIDDEN) F.add(rec, 'hidden_from_ax');
      if (flags & INERT && R.interactive.has(role)) F.add(rec, 'inert');
      this.add(rec);
      this.size += name.length + rec.value.length + rec.attrs.length + role.length + 10;
      return rec;
    }

    // before is the name that does not come from the content. Texts of other elements may
    // be in it, which need not lie in the same cell.
    before(el, tag, at) {
      const name = N.before(el, tag, at & A['aria-label'], at & A['aria-labelledby']);
      if (at & A['aria-labelledby'] || N.outside.has(tag)) this.asked(N.again, el, name);
      return name;
    }

    // inside goes on with what the element holds.
    inside(el, tag, o, up, block, cell) {
      const rec = o.rec;
      let first = el.firstChild, list = null, style = up.style;
      if (rec && rec.role === 'Iframe') { this.iframe(el, rec, o.flags, up, block); return; }
      if (closed(tag, o.role)) first = null;
      else if (tag === 'details' && !el.open) list = [...el.children].filter((k) => k.localName === 'summary').slice(0, 1);
      else if (tag.includes('-') || R.hosts.has(tag)) {
        const root = P.shadow(el);
        if (root) { first = root.firstChild; style = this.styleOf(root); this.spoils++; }
      } else if (tag === 'slot') {
        this.spoils++;
        const a = el.assignedNodes();
        if (a.length) list = a;
      }
      if (!first && !list && !rec && !block) return;
      const c = this.push(el, list ? null : first, rec || up.rec, o.flags, up.frame, style);
      c.list = list;
      c.own = rec;
      if (rec && rec.fromContent) this.namers++;
      c.seen = o.seen;
      c.block = block;
      c.editor = o.editor;
      if (cell >= 0) this.open(c, cell, up.rec);
    }

    open(c, flags, outer) {
      const m = this.mark;
      c.cell = true;
      c.recs = m.recs; c.looks = m.looks; c.reads = m.reads; c.nodes = m.nodes; c.size = m.size; c.before = m.list; c.spoils = m.spoils;
      c.given = flags;
      c.outer = outer;
    }

    styleOf(root) {
      let s = this.styles.get(root);
      if (!s) { s = S.of(root); this.styles.set(root, s); }
      return s;
    }

    iframe(el, rec, flags, up, block) {
      const d = el.contentDocument;
      this.spoils++;
      const c = this.push(el, null, rec, flags, up.frame, up.style);
      c.own = rec;
      c.block = block;
      c.seen = 1;
      if (!d) { this.foreign(el, rec); return; }
      if (this.frames >= maxFrames) { rec.attrs += ', not read: more than ' + maxFrames + ' iframes deep'; this.cut = this.cut || 'frames'; return; }
      this.frames++;
      c.leave = 1;
      this.doc(d, rec, flags & (UNPAINTED | AXHIDDEN | INERT) | APART, {host: el, up: up.frame});
    }

    // foreign notes a frame of another origin: its own world has to be asked.
    foreign(el, rec) {
      for (let i = 0, w = el.ownerDocument.defaultView; w && i < w.length; i++) {
        if (w[i] === el.contentWindow) { rec.child = i; return; }
      }
      rec.attrs += ', unreadable';
    }

    pop(c) {
      this.depth--;
      if (c.leave) this.frames--;
      const rec = c.own;
      if (c.block || rec) this.flush();
      if (rec) {
        P.lines.settle(this, rec, c);
        if (rec.fromContent) this.namers--;
        if (this.namers) this.told(rec, c);
        else this.chunks.length = 0;
      }
      if (c.block) { if (this.namers) this.chunks.push(' '); this.textEl = null; }
      if (c.cell && this.spoils === c.spoils) this.cells.store(this, c);
    }

    // told puts what rec says of itself in place of the text inside it, for the name of an
    // element around it. What hangs below a tree or menu item is no part of its name.
    told(rec, c) {
      const branch = (rec.role === 'group' || rec.role === 'menu' || rec.role === 'list') && this.inItem();
      if (!branch && !rec.given && rec.role !== 'image' && rec.tag !== 'select' && !c.editor) return;
      this.chunks.length = c.chunk;
      if (!branch && !(c.flags & UNNAMED)) this.chunks.push(' ', rec.given ? rec.name : rec.value, ' ');
    }

    inItem() {
      for (let i = this.depth; i >= 0; i--) {
        const r = this.stack[i].own;
        if (r && r.fromContent) return r.role === 'treeitem' || r.role.startsWith('menuitem');
      }
      return false;
    }
  }

  const editing = (el) => {
    const v = el.getAttribute('contenteditable').toLowerCase();
    return v === '' || v === 'true' || v === 'plaintext-only';
  };

  const svgTitle = (el) => {
    for (let c = el.firstElementChild; c; c = c.nextElementSibling) if (c.localName === 'title') return true;
    return false;
  };

  const touches = (el, at) => (at & A.onclick) !== 0 || (at & A.draggable && el.draggable) || (at & A.tabindex && el.tabIndex >= 0);

  const walk = (max, full) => {
    const w = new Walk(max);
    w.active = deepActive();
    if (!full && P.cells.begin(w.active)) w.cells = P.cells;
    w.root = {host: null, up: null};
    w.doc(document, null, 0, w.root);
    w.loop();
    w.flush();
    if (w.cells) w.cells.end();
    return w;
  };

  // P.observe reads the page. Options: max (bytes of text), elements (boxes wanted too),
  // proof (it is made again with nothing taken from the last one, and must be the same), now
  // (a name for this answer) and have (that of the last answer which the driver has kept).
  // In a frame that the main frame's world cannot enter, also: prefix (the frame's bids),
  // depth (of its lines), x and y (where it lies on the screen) and clip (what can be seen
  // of it). The answer is one string, so that the protocol has to escape it only once: a line
  // of JSON, then a line for each element with tabs between its fields, then the text, or of it
  // what has changed since the answer that the driver has.
  P.observe = (opts) => {
    if (opts.prefix) P.registry.enter(opts.prefix);
    const max = opts.max || 262144;
    const page = P.lines.render(walk(max, false), opts);
    if (opts.proof) {
      const text = P.lines.whole(page), full = P.lines.whole(P.lines.render(walk(max, true), opts));
      if (full !== text) throw new Error('the observation is stale: ' + JSON.stringify([text, full]));
    }
    return P.lines.answer(page, opts);
  };

  // P.listed are the elements that an observation shows with a role, and their names.
  P.listed = (role) => walk(Infinity).recs.filter((r) => r.el && !r.drop && (role === null || r.role === role)).map((r) => ({el: r.el, name: r.name, role: r.role}));
})();
