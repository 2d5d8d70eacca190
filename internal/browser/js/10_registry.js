// Bids: the short names by which an agent points at elements.
//
// A bid is a frame prefix and a number: "12" in the main frame, "a12" in its first
// iframe, "ab3" in the second iframe of that one. An iframe element itself is named by
// its prefix alone ("a"). Every level starts with a lower-case letter and goes on with
// upper-case ones (a..z, aA..zZ, aAA...), so a prefix can be read back without doubt.
//
// Nothing here touches the page: names live in weak maps of the isolated world. A wrapper
// that is a key of a WeakMap is never dropped before its node, so a bid lasts exactly as
// long as its element. Numbers are never given twice within one document of the main
// frame, so a bid of an element that has gone stays recognisable as stale.
(() => {
  const ids = new WeakMap();        // element -> bid
  const byElement = new WeakMap();  // iframe element -> its frame
  const byDocument = new WeakMap(); // document -> frame; saves the way up through the windows
  const byPrefix = new Map();       // prefix -> frame; frames hold numbers only, so this stays small
  const refs = new Map();           // bid -> WeakRef(element)
  let sweepAt = 8192;

  const newFrame = (prefix) => {
    const f = {prefix, next: 0, nextFrame: 0};
    byPrefix.set(prefix, f);
    return f;
  };
  const main = newFrame('');

  const letters = (n) => {
    let s = '';
    for (n++; n > 26; n = Math.floor((n - 1) / 26)) s = String.fromCharCode(65 + (n - 1) % 26) + s;
    return String.fromCharCode(96 + n) + s;
  };
  const number = (s) => {
    let n = 0;
    for (const c of s.toUpperCase()) n = n * 26 + c.charCodeAt(0) - 64;
    return n - 1;
  };

  const isFrame = (el) => el.localName === 'iframe' || el.localName === 'frame';

  // frameOf finds the frame a document is shown in. A document that is shown nowhere
  // (made by script, or of an iframe that has gone) counts as the main one.
  const frameOf = (doc) => {
    let f = byDocument.get(doc);
    if (f) return f;
    const host = doc === document || !doc.defaultView ? null : doc.defaultView.frameElement;
    f = host ? frameIn(host) : main;
    byDocument.set(doc, f);
    return f;
  };

  // frameIn is the frame inside an iframe element. It belongs to the element, not to the
  // document, so that numbers go on when the iframe navigates.
  const frameIn = (host) => {
    let f = byElement.get(host);
    if (!f) {
      f = newFrame(bid(host));
      byElement.set(host, f);
    }
    return f;
  };

  // Entries of collected elements are swept when the map has doubled, so that a page
  // which redraws itself for hours costs no more than its living elements.
  const sweep = () => {
    for (const [b, r] of refs) if (r.deref() === undefined) refs.delete(b);
    sweepAt = Math.max(8192, refs.size * 2);
  };

  const bidIn = (el, frame) => {
    let b = ids.get(el);
    if (b !== undefined) return b;
    b = frame.prefix + (isFrame(el) ? letters(frame.nextFrame++) : frame.next++);
    ids.set(el, b);
    refs.set(b, new WeakRef(el));
    if (refs.size > sweepAt) sweep();
    return b;
  };

  const bid = (el) => ids.get(el) ?? bidIn(el, frameOf(el.ownerDocument));

  const shown = (el) => {
    for (;;) {
      if (!el.isConnected) return false;
      const doc = el.ownerDocument;
      if (doc === document) return true;
      el = doc.defaultView && doc.defaultView.frameElement;
      if (!el) return false;
    }
  };

  // P.bid names an element, for its whole life.
  P.bid = bid;

  // P.byBid finds the element again; null when it never was or is not in the page now.
  P.byBid = (b) => {
    const r = refs.get(b);
    const el = r && r.deref();
    return el && shown(el) ? el : null;
  };

  // P.wasBid says whether the name was ever given: true with byBid null means stale.
  P.wasBid = (b) => {
    let m = /^((?:[a-z][A-Z]*)*)(0|[1-9][0-9]{0,8})$/.exec(b);
    if (m) return byPrefix.has(m[1]) && +m[2] < byPrefix.get(m[1]).next;
    m = /^((?:[a-z][A-Z]*)*)([a-z][A-Z]*)$/.exec(b);
    return !!m && byPrefix.has(m[1]) && number(m[2]) < byPrefix.get(m[1]).nextFrame;
  };

  // enter tells this world that its document is shown in the frame of that prefix, which
  // belongs to a page that it cannot reach.
  const enter = (prefix) => {
    if (main.prefix === prefix) return;
    byPrefix.delete(main.prefix);
    main.prefix = prefix;
    byPrefix.set(prefix, main);
  };

  // For the observation pass.
  P.registry = {ids, enter, isFrame};
})();
