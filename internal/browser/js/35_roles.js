// Roles: what each element is, from its role attribute or its tag.
(() => {
  const set = (s) => new Set(s.split(' '));

  // Roles whose name is the text inside them (WAI-ARIA, "name from contents").
  // Cells and rows are left out: the observation lays tables out by itself.
  const fromContent = set('button checkbox heading link menuitem menuitemcheckbox menuitemradio option radio switch tab tooltip treeitem');

  // Roles a user clicks or types into.
  const interactive = set('button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio scrollbar searchbox slider spinbutton switch tab textbox treeitem');

  // Roles whose content a user meets as one thing: nothing but interactive parts is listed below them.
  const atomic = set('button checkbox image math menuitemcheckbox menuitemradio meter option progressbar radio scrollbar separator slider switch tab');

  const editable = set('textbox searchbox combobox spinbutton');

  // Every role that the role attribute may name; other words in it are passed over, as browsers do.
  const known = set('alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox complementary contentinfo definition dialog directory document feed figure form generic grid gridcell group heading image img link list listbox listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid treeitem');

  // Same thing, one word.
  const alias = {img: 'image', none: 'generic', presentation: 'generic', rowgroup: 'generic', paragraph: 'generic', directory: 'list', strong: 'generic', time: 'generic', code: 'generic'};

  // Tag to role where the tag alone decides. Tags that are in neither table are generic.
  const byTag = new Map(Object.entries({
    article: 'article', aside: 'complementary', audio: 'Audio', blockquote: 'blockquote', button: 'button',
    canvas: 'Canvas', datalist: 'listbox', dd: 'definition', details: 'group', dialog: 'dialog', dl: 'list',
    dt: 'term', embed: 'Embed', fieldset: 'group', figure: 'figure', frame: 'Iframe', h1: 'heading', h2: 'heading', h3: 'heading',
    h4: 'heading', h5: 'heading', h6: 'heading', hr: 'separator', iframe: 'Iframe', li: 'listitem',
    main: 'main', math: 'math', menu: 'list', meter: 'meter', nav: 'navigation', object: 'Embed', ol: 'list', optgroup: 'group',
    option: 'option', output: 'status', progress: 'progressbar', search: 'search', svg: 'image', table: 'table',
    td: 'cell', textarea: 'textbox', th: 'columnheader', tr: 'row', ul: 'list', video: 'Video',
  }));

  const byType = {
    button: 'button', checkbox: 'checkbox', color: 'textbox', file: 'button', image: 'button', number: 'spinbutton',
    radio: 'radio', range: 'slider', reset: 'button', search: 'searchbox', submit: 'button', hidden: '',
  };

  // Tags with nothing to read inside.
  const skipped = set('script style head noscript template link meta base title source track param wbr datalist area map col colgroup rp');

  // Tags that begin and end a line of text, by the browser's own style sheet.
  const block = set('address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search section summary svg table tbody td tfoot th thead tr ul');

  // Tags that attachShadow accepts, besides names with a dash.
  const hosts = set('article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span');

  // roleOf gives the role of el; '' means that it is to be passed over with all it holds.
  // "explicit" is the value of its role attribute or null; "sectioned" says that it is
  // inside sectioning content, where header and footer mean nothing.
  const roleOf = (el, tag, explicit, sectioned) => {
    if (explicit) {
      for (const r of explicit.toLowerCase().split(/\s+/)) if (known.has(r)) return alias[r] || r;
    }
    const r = byTag.get(tag);
    if (r !== undefined) return r;
    switch (tag) {
      case 'a': return el.hasAttribute('href') || el.hasAttribute('xlink:href') ? 'link' : 'generic';
      case 'input': {
        const t = byType[el.type];
        if (t === undefined || t === 'searchbox') return el.list ? 'combobox' : t || 'textbox';
        return t;
      }
      case 'summary': return el.parentElement && el.parentElement.localName === 'details' ? 'button' : 'generic';
      case 'img': return el.alt === '' && el.hasAttribute('alt') && !el.title && !el.hasAttribute('aria-label') ? 'generic' : 'image';
      case 'select': return el.multiple || el.size > 1 ? 'listbox' : 'combobox';
      case 'header': return sectioned ? 'generic' : 'banner';
      case 'footer': return sectioned ? 'generic' : 'contentinfo';
      case 'section': return 'region?';
      case 'form': return 'form?';
    }
    return 'generic';
  };

  P.roles = {fromContent, interactive, atomic, editable, skipped, block, hosts, roleOf, sectioning: set('article aside main nav section')};
})();
