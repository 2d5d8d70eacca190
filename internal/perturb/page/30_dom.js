// Changes to the page's own elements.

// Ids get a prefix, as a change of the framework would give them. What refers to an id goes
// on working: attributes, style rules, and scripts that look for the old one.
kinds['dom.rename_ids'] = () => {
  const prefix = choose(['r', 'c', 'x', 'el', 'ui']) + ((F.pick >>> 4) % 900 + 100).toString(36) + '-';
  const all = [...document.querySelectorAll('[id]')];
  if (!all.length) return null;
  const known = new Set(all.map((e) => e.id));
  const renamed = (s) => s.split(/(\s+)/).map((w) => known.has(w) ? prefix + w : w).join('');
  for (const a of ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-owns', 'aria-errormessage', 'aria-activedescendant', 'list', 'form', 'headers', 'popovertarget'])
    for (const e of document.querySelectorAll('[' + a + ']')) e.setAttribute(a, renamed(e.getAttribute(a)));
  for (const e of document.querySelectorAll('[href^="#"], use')) { const h = e.getAttribute('href') || ''; if (h[0] === '#' && known.has(h.slice(1))) e.setAttribute('href', '#' + prefix + h.slice(1)); }
  for (const e of all) e.id = prefix + e.id;
  for (const a of ['data-testid', 'data-test', 'data-test-id']) for (const e of document.querySelectorAll('[' + a + ']')) e.setAttribute(a, prefix + e.getAttribute(a));
  const swap = (s) => String(s).replace(/#([A-Za-z_][\w-]*)/g, (m, id) => known.has(id) ? '#' + prefix + id : m);
  const rules = (list) => { for (const r of list) { if (r.selectorText && r.selectorText.includes('#')) r.selectorText = swap(r.selectorText); if (r.cssRules) rules(r.cssRules); } };
  for (const s of document.styleSheets) { try { rules(s.cssRules); } catch { /* of another origin */ } }
  const byId = Document.prototype.getElementById;
  Document.prototype.getElementById = function (id) { return byId.call(this, id) || byId.call(this, prefix + id); };
  for (const proto of [Document.prototype, Element.prototype, DocumentFragment.prototype]) {
    const one = proto.querySelector, many = proto.querySelectorAll;
    proto.querySelector = function (s) { return one.call(this, s) || (String(s).includes('#') ? one.call(this, swap(s)) : null); };
    proto.querySelectorAll = function (s) { const l = many.call(this, s); return l.length || !String(s).includes('#') ? l : many.call(this, swap(s)); };
  }
  return {seen: 'ids begin with ' + prefix, target: all.length + ' elements'};
};

// word: [synonyms], [icon, its name], German, French.
const dictionary = {
  'add to cart': [['Add to basket', 'Put in cart', 'Buy this'], ['\u{1F6D2}', 'Add item'], 'In den Warenkorb', 'Ajouter au panier'],
  'cart': [['Basket', 'Bag'], ['\u{1F6D2}', 'Basket'], 'Warenkorb', 'Panier'],
  'checkout': [['Go to checkout', 'Proceed to order'], ['\u{1F4B3}', 'Pay'], 'Zur Kasse', 'Passer commande'],
  'go to checkout': [['Check out', 'Proceed to order'], ['\u{1F4B3}', 'Pay'], 'Zur Kasse', 'Passer commande'],
  'place order': [['Submit order', 'Buy now', 'Complete order'], ['\u2714', 'Order'], 'Kaufen', 'Commander'],
  'continue': [['Next', 'Go on', 'Next step'], ['\u27a1', 'Next'], 'Weiter', 'Continuer'],
  'sign in': [['Log in', 'Login'], ['\u{1F511}', 'Log in'], 'Anmelden', 'Se connecter'],
  'sign out': [['Log out', 'Logout'], ['\u{1F6AA}', 'Log out'], 'Abmelden', 'Se d\u00e9connecter'],
  'create account': [['Register', 'Join now'], ['\u{1F464}', 'Join'], 'Konto anlegen', 'Cr\u00e9er un compte'],
  'create an account': [['Register', 'Join now'], ['\u{1F464}', 'Join'], 'Konto anlegen', 'Cr\u00e9er un compte'],
  'search': [['Find', 'Go'], ['\u{1F50D}', 'Find'], 'Suchen', 'Rechercher'],
  'apply': [['Use', 'Set'], ['\u2714', 'Use'], 'Anwenden', 'Appliquer'],
  'apply filters': [['Update results', 'Filter'], ['\u2714', 'Filter'], 'Filtern', 'Filtrer'],
  'filter': [['Narrow down', 'Show'], ['\u{1F50D}', 'Narrow down'], 'Filtern', 'Filtrer'],
  'save': [['Save changes', 'Store', 'Update'], ['\u{1F4BE}', 'Store'], 'Speichern', 'Enregistrer'],
  'save profile': [['Update profile', 'Save changes'], ['\u{1F4BE}', 'Store'], 'Profil speichern', 'Enregistrer le profil'],
  'save address': [['Store address', 'Save changes'], ['\u{1F4BE}', 'Store'], 'Adresse speichern', "Enregistrer l'adresse"],
  'save product': [['Update product', 'Save changes'], ['\u{1F4BE}', 'Store'], 'Produkt speichern', 'Enregistrer le produit'],
  'remove': [['Take out', 'Delete'], ['\u{1F5D1}', 'Take out'], 'Entfernen', 'Retirer'],
  'delete': [['Remove', 'Erase'], ['\u{1F5D1}', 'Erase'], 'L\u00f6schen', 'Supprimer'],
  'edit': [['Change', 'Modify'], ['\u270f', 'Change'], 'Bearbeiten', 'Modifier'],
  'cancel order': [['Withdraw order', 'Call off order'], ['\u2716', 'Withdraw order'], 'Bestellung stornieren', 'Annuler la commande'],
  'order again': [['Reorder', 'Buy again'], ['\u{1F501}', 'Reorder'], 'Erneut bestellen', 'Commander \u00e0 nouveau'],
  'send review': [['Submit review', 'Post review'], ['\u2714', 'Post'], 'Bewertung senden', "Envoyer l'avis"],
  'orders': [['Purchases', 'Order history'], ['\u{1F4E6}', 'Purchases'], 'Bestellungen', 'Commandes'],
  'account': [['My account', 'Profile'], ['\u{1F464}', 'Profile'], 'Konto', 'Compte'],
  'products': [['Catalogue', 'Items'], ['\u{1F4CB}', 'Items'], 'Produkte', 'Produits'],
  'customers': [['Clients', 'Buyers'], ['\u{1F465}', 'Clients'], 'Kunden', 'Clients'],
  'help': [['Support', 'FAQ'], ['\u2753', 'Support'], 'Hilfe', 'Aide'],
  'submit': [['Send', 'Done'], ['\u2714', 'Send'], 'Absenden', 'Envoyer'],
  'next': [['Continue', 'Forward'], ['\u27a1', 'Forward'], 'Weiter', 'Suivant'],
  'back': [['Return', 'Previous'], ['\u2b05', 'Previous'], 'Zur\u00fcck', 'Retour'],
};
kinds['dom.relabel'] = () => {
  const done = [];
  for (const e of document.querySelectorAll('button, a[href], summary, [role=button], [role=link]')) {
    if (e.hasAttribute('aria-label')) continue;
    const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
      const entry = dictionary[n.data.trim().toLowerCase()];
      if (!entry) continue;
      const old = n.data.trim();
      const [synonyms, icon, german, french] = entry;
      const style = F.texts.style;
      const text = style === 'icon' ? icon[0] : style === 'german' ? german : style === 'french' ? french : synonyms[(F.pick >>> 3) % synonyms.length];
      if (style === 'icon') e.setAttribute('aria-label', icon[1]);
      n.data = n.data.replace(old, text);
      done.push(old + ' -> ' + text);
      break;
    }
  }
  return done.length ? {seen: done.slice(0, 12).join(', '), target: done.length + ' controls'} : null;
};

// What a style sheet may have given to a control by its tag.
const given = ['display', 'flex', 'flex-direction', 'align-items', 'justify-content', 'gap', 'grid-template-columns', 'padding', 'margin', 'border', 'border-radius',
  'background', 'color', 'font', 'line-height', 'letter-spacing', 'text-align', 'text-decoration', 'text-transform', 'box-shadow', 'min-height', 'min-width', 'white-space'];
// Another element takes a control's place and passes presses on to it.
kinds['dom.retag'] = () => {
  const found = [...document.querySelectorAll('main a[href], main button')].filter((e) => shown(e) && !e.closest('dialog') && e.textContent.trim());
  if (!found.length) return null;
  let n = 0;
  let some = found.filter((e, i) => (F.pick >>> (i % 20)) % 3 === 0);
  if (!some.length) some = [choose(found)];
  some.forEach((e) => {
    const link = e.localName === 'a', own = styleOf(e), was = Object.fromEntries(given.map((k) => [k, own.getPropertyValue(k)]));
    const s = document.createElement(link ? 'span' : 'div');
    s.className = e.className;
    s.setAttribute('role', link ? 'link' : 'button');
    s.tabIndex = 0;
    css(s, {cursor: 'pointer'});
    for (const a of ['aria-label', 'aria-current', 'title']) if (e.hasAttribute(a)) s.setAttribute(a, e.getAttribute(a));
    s.append(...[...e.childNodes].map((c) => c.cloneNode(true)));
    const sync = () => { if (e.disabled || e.getAttribute('aria-disabled') === 'true') s.setAttribute('aria-disabled', 'true'); else s.removeAttribute('aria-disabled'); };
    sync();
    new MutationObserver(sync).observe(e, {attributes: true, attributeFilter: ['disabled', 'aria-disabled']});
    s.addEventListener('click', (ev) => { ev.stopPropagation(); if (!e.disabled) e.click(); });
    s.addEventListener('keydown', (ev) => { if (ev.key === 'Enter' || ev.key === ' ' && !link) { ev.preventDefault(); if (!e.disabled) e.click(); } });
    e.after(s);
    const now = styleOf(s);
    for (const k of given) if (now.getPropertyValue(k) !== was[k]) css(s, {[k]: was[k]});
    e.style.setProperty('display', 'none', 'important');
    n++;
  });
  return n ? {target: n + ' controls'} : null;
};

kinds['dom.reorder'] = () => {
  let n = 0;
  for (const list of document.querySelectorAll('nav ul, nav ol, header ul, footer ul, [role=menubar]')) {
    const items = [...list.children];
    // The order of a trail of crumbs says where the page is.
    if (items.length < 3 || items[items.length - 1].matches('[aria-current]:not(:has(a))')) continue;
    const by = 1 + F.pick % (items.length - 1);
    for (const it of items.slice(0, by)) list.append(it);
    n++;
  }
  return n ? {target: n + ' menus'} : null;
};

kinds['dom.move'] = () => {
  const asides = [...document.querySelectorAll('main aside, main form.filters, main nav')].filter((e) => e.parentElement && e.parentElement.children.length > 1 && shown(e));
  for (const e of asides) {
    const parent = e.parentElement, tracks = styleOf(parent).gridTemplateColumns.split(' ');
    // The columns of a grid change sides with what stands in them; the widest takes what is left.
    if (styleOf(parent).display === 'grid' && tracks.length === 2 && parent.children.length === 2) {
      const [a, b] = tracks.map(parseFloat);
      css(parent, {'grid-template-columns': a < b ? 'minmax(0, 1fr) ' + a + 'px' : b + 'px minmax(0, 1fr)'});
    }
    if (e.previousElementSibling) parent.prepend(e); else parent.append(e);
  }
  return asides.length ? {target: asides.length + ' parts'} : null;
};

kinds['dom.restyle'] = () => {
  const fonts = ['Georgia, "Liberation Serif", serif', '"DejaVu Sans", Verdana, sans-serif', '"Liberation Mono", monospace', '"Liberation Sans Narrow", Arial, sans-serif'];
  const sheet = new CSSStyleSheet();
  const size = choose([92, 97, 104, 108]), round = [0, 3, 18, 99][(F.pick >>> 5) % 4], hue = [0, 30, -40, 120, 200][(F.pick >>> 9) % 5];
  sheet.replaceSync(`body { font-family: ${fonts[(F.pick >>> 3) % 4]} !important; font-size: ${size}% !important; }
    button, .button, input, select { border-radius: ${round}px !important; } button, .button, .badge { filter: hue-rotate(${hue}deg); }
    button, .button { text-transform: ${(F.pick >>> 12) % 3 ? 'none' : 'uppercase'}; letter-spacing: ${(F.pick >>> 14) % 2 ? '.03em' : 'normal'}; }`);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  return {target: 'the page'};
};

kinds['dom.delay_enable'] = () => {
  const found = [...document.querySelectorAll('main form button:not([type=button]), main form input[type=submit]')].filter((b) => !b.disabled && !b.closest('dialog') && shown(b));
  for (const b of found) b.disabled = true;
  setTimeout(() => { for (const b of found) b.disabled = false; }, F.numbers.delay);
  return found.length ? {target: found.length + ' buttons'} : null;
};

kinds['browser.zoom'] = () => { document.documentElement.style.zoom = F.numbers.percent / 100; return {target: 'the page'}; };

// Tokens that protect forms have run out: they are no longer those that the server gave.
kinds['session.stale_form'] = () => {
  const re = /csrf|xsrf|authenticity|antiforgery|requestverification/i;
  const turn = (s) => [...s].reverse().join('');
  let n = 0;
  for (const e of document.querySelectorAll('input[type=hidden]')) if (re.test(e.name) && e.value) { e.value = turn(e.value); n++; }
  for (const e of document.querySelectorAll('meta[name]')) if (re.test(e.name) && e.content) { e.content = turn(e.content); n++; }
  for (const e of [document.body, document.documentElement]) for (const k in e.dataset) if (re.test(k) && e.dataset[k]) { e.dataset[k] = turn(e.dataset[k]); n++; }
  return n ? {target: n + ' tokens'} : null;
};
