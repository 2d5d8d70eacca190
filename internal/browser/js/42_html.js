// HTML: the raw markup of the page, for tasks that ask for it. Nothing is left out and
// no bids are written into it; hidden content is in it as in the page.
(() => {
  const shadows = (root, out) => {
    for (const el of root.querySelectorAll('*')) {
      if (!el.localName.includes('-') && !P.roles.hosts.has(el.localName)) continue;
      const s = P.shadow(el);
      if (s) { out.push(s); shadows(s, out); }
    }
    return out;
  };

  const ofDocument = (d) => {
    const e = d.documentElement;
    if (!e) return '';
    const type = d.doctype ? '<!doctype ' + d.doctype.name + '>\n' : '';
    const roots = shadows(d, []);
    if (!roots.length) return type + e.outerHTML;
    const tag = /^<[^>]*>/.exec(e.cloneNode(false).outerHTML)[0];
    return type + tag + e.getHTML({shadowRoots: roots}) + '</' + e.localName + '>';
  };

  // P.html gives the markup of the main document, shadow roots as template elements, and
  // after it that of each iframe under a comment with its bid.
  P.html = (max) => {
    let s = '';
    const todo = [{d: document, name: ''}];
    while (todo.length && s.length <= max) {
      const {d, name} = todo.shift();
      if (name) s += '\n<!-- iframe ' + name + ': ' + d.URL + ' -->\n';
      s += ofDocument(d);
      for (const f of d.querySelectorAll('iframe, frame')) {
        if (f.contentDocument && todo.length < 100) todo.push({d: f.contentDocument, name: P.registry.ids.get(f) || '(not shown)'});
      }
    }
    s = s.toWellFormed().replaceAll('\u0000', '\ufffd');
    return s.length <= max ? s : s.slice(0, max).toWellFormed() + '\n<!-- cut: ' + (s.length - max) + ' more characters -->';
  };
})();
