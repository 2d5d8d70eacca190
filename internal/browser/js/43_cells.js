// Cells: parts of the main document that the walk need not enter again.
//
// What the walk makes of a part of the page depends on three things: on the document, on
// where the part hangs, and on what layout, styles and controls answered. A cell remembers
// the records that its part made, the place, and each question with its answer. It holds
// as long as the document has not changed there, the place is the same and every question
// is answered as before; then its records are put where they were. Anything else, and the
// part is walked. So an observation is the same with cells and without.
//
// A cell is a block outside of anything that is named by its content, so no text runs over
// its edge. Shadow trees, iframes and editors are in no cell.
(() => {
  const F = P.form, V = P.sight;

  const smallest = 6, largest = 80; // nodes of a cell
  const most = 200;                 // changes after which it is cheaper to forget all

  const cells = new Map(); // element -> cell; cells never lie in each other
  let watching = false;
  let active = null;       // element with the focus
  let groups = null;       // the candidates of 37_styles.js, as lists
  let used = [];           // elements of the cells of this walk, in order
  let still = false;       // the document has not changed since groups were made

  const reset = () => {
    cells.clear();
    if (watching) observer.disconnect();
    watching = false;
    still = false;
  };

  // forget drops the cell that a node lies in.
  const forget = (n) => { for (; n; n = n.parentNode) if (cells.delete(n)) return; };

  // inserted drops the cells within a node that has come in: it may have changed while it
  // was out.
  const inserted = (n) => { for (const el of cells.keys()) if (n.contains(el)) cells.delete(el); };

  const changed = (records) => {
    if (records.length) still = false;
    let n = records.length;
    for (const r of records) n += r.addedNodes.length;
    if (n > most) { reset(); return; }
    for (const r of records) {
      forget(r.target);
      for (const a of r.addedNodes) if (a.nodeType === 1) inserted(a);
    }
  };
  const observer = new MutationObserver(changed);

  // Shadow roots are no part of the document: with a new one all is walked again.
  P.rooted = reset;

  const differs = (a, b) => a.size !== b.size || !a.isSubsetOf(b);

  // holds asks a cell's questions again.
  const holds = (cell) => {
    const {looks, reads} = cell;
    for (let i = 0; i < looks.length; i++) if (!(looks[i].offsetWidth > 0) && V.look(looks[i], 0) !== 1) return false;
    for (let i = 0; i < reads.length; i += 3) if (reads[i](reads[i + 1]) !== reads[i + 2]) return false;
    return true;
  };

  const begin = (focus) => {
    // While a document loads, its parser adds what no observer is told of.
    if (document.readyState === 'loading') { reset(); return false; }
    if (watching) changed(observer.takeRecords());
    if (!watching) {
      cells.clear();
      observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
      watching = true;
    }
    if (focus !== active) { forget(focus); forget(active); }
    active = focus;
    used = [];
    return true;
  };

  // candidates are those of 37_styles.js, made anew only if they can have changed.
  const candidates = (d) => still && groups && P.styles.lasting(d, groups) ? groups : P.styles.of(d);

  // style takes the candidates of this walk: a cell that one has come to or gone from is
  // not what it was.
  const style = (s) => {
    P.cells.hide = s.hide;
    still = true;
    if (groups && groups !== s) {
      for (const k of ['hide', 'dim', 'point', 'scroll']) {
        if (!differs(s[k], groups[k])) continue;
        for (const el of s[k].symmetricDifference(groups[k])) forget(el);
      }
    }
    groups = s;
  };

  // end drops the cells that the walk did not come by.
  const end = () => {
    if (cells.size === used.length) return;
    const now = new Set(used);
    for (const el of cells.keys()) if (!now.has(el)) cells.delete(el);
  };

  // store makes a cell of the element that the walk is leaving.
  const store = (w, c) => {
    const nodes = w.nodes - c.nodes;
    if (nodes < smallest || nodes > largest) return;
    const recs = w.recs.slice(c.recs);
    let bound = 0;
    for (const r of recs) {
      r.nameThen = r.name;
      r.dropThen = r.drop;
      r.outer = r.up === c.outer;
      bound += 3 * r.name.length + r.value.length + r.attrs.length + 64;
    }
    while (used.length && cells.get(used[used.length - 1]).from >= c.recs) cells.delete(used.pop());
    used.push(c.el);
    cells.set(c.el, {
      from: c.recs, given: c.given, recs, bound, nodes, size: w.size - c.size,
      tops: c.outer && c.outer.list ? c.outer.list.slice(c.before) : [],
      looks: w.looks.slice(c.looks).filter((el) => el !== null), reads: w.reads.slice(c.reads),
    });
  };

  // replay puts the records of a cell where the walk is now, if it holds.
  const replay = (w, el, flags, up) => {
    const cell = cells.get(el);
    if (cell === undefined) return false;
    if (cell.given !== flags || !w.roomFor(cell.nodes, cell.bound) || !holds(cell)) {
      cells.delete(el);
      return false;
    }
    const outer = up.rec;
    cell.from = w.recs.length;
    for (const r of cell.recs) {
      r.name = r.nameThen;
      r.drop = r.dropThen;
      r.index = w.recs.length;
      r.frame = up.frame;
      if (r.outer) r.up = outer;
      w.recs.push(r);
    }
    if (outer && cell.tops.length) (outer.list || (outer.list = [])).push(...cell.tops);
    w.nodes += cell.nodes;
    w.size += cell.size;
    for (const l of cell.looks) w.looks.push(l);
    for (const r of cell.reads) w.reads.push(r);
    used.push(el);
    return true;
  };

  P.cells = {
    begin, candidates, style, end, store, replay, hide: null,
    relabel: (el) => F.written(F.label(el, P.cells.hide)),
  };
})();
