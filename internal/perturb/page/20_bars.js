// What lies over a part of the page.
const cookies = {
  common: [
    {text: 'We use cookies to remember your cart, to keep you signed in and to understand how our shop is used.', yes: 'Accept all', no: 'Only necessary', title: 'Your privacy'},
    {text: 'This site uses cookies. Some are needed for it to work, others help us to improve it.', yes: 'Accept', no: 'Decline', title: 'Cookies'},
    {text: 'We and our partners store information on your device for functional and statistical purposes. You can change your choice at any time.', yes: 'Allow all cookies', no: 'Reject optional cookies', title: 'Cookie settings'},
  ],
  heldout: [
    {text: 'We keep small files in your browser. Most of them make the shop work, and a few count visits.', yes: 'That is fine', no: 'Just the essentials', title: 'Before you look around'},
  ],
};
kinds['ui.cookie_banner'] = () => {
  const w = words(cookies), boxed = (F.pick >>> 8) % 3 === 0;
  later(() => {
    let close;
    const id = fresh('consent');
    const text = make('div', {}, {flex: '1 1 360px'},
      make('h2', {id}, {'font-size': '16px', 'font-weight': '700', margin: '0 0 4px', 'line-height': '1.3', color: look.ink}, w.title),
      make('p', {}, {margin: '0', color: look.soft, 'font-size': '14px'}, w.text));
    const row = make('div', {}, {display: 'flex', gap: '10px', 'flex-wrap': 'wrap', flex: '0 0 auto'}, button(w.no, false, () => close()), button(w.yes, true, () => close()));
    const bar = make('div', {role: 'region', 'aria-labelledby': id}, {
      ...base, position: 'fixed', 'z-index': '2147482000', background: look.paper, 'box-shadow': shadow, border: '1px solid ' + look.line, display: 'flex', gap: '18px', 'align-items': 'center',
      ...(boxed ? {left: '20px', bottom: '20px', width: '420px', 'max-width': 'calc(100vw - 40px)', 'border-radius': '14px', padding: '20px 22px', 'flex-wrap': 'wrap'}
        : {left: '0', right: '0', bottom: '0', padding: '22px max(24px, calc((100vw - 1200px) / 2))', 'border-width': '1px 0 0', 'min-height': '120px'}),
    }, text, row);
    close = stand(bar);
  });
  return {seen: w.title};
};

const chats = {
  common: [
    {name: 'Chat with us', hello: 'Hi! I am Sam from customer care. Can I help you find something?', hint: 'Type your message'},
    {name: 'Need help?', hello: 'Hello! We usually reply within a few minutes.', hint: 'Write a message'},
  ],
  heldout: [{name: 'Ask our team', hello: 'Good morning! What can we do for you?', hint: 'Your question'}],
};
kinds['ui.chat_widget'] = () => {
  const w = words(chats);
  later(() => {
    let close;
    const id = fresh('chat');
    const head = make('div', {}, {background: look.accent, color: look.on, padding: '12px 10px 12px 16px', display: 'flex', 'justify-content': 'space-between', 'align-items': 'center'},
      make('h2', {id}, {'font-size': '16px', 'font-weight': '700', margin: '0', color: look.on}, w.name), css(cross('Close chat', () => close()), {color: look.on}));
    const talk = make('div', {}, {flex: '1', padding: '16px', overflow: 'auto'},
      make('p', {}, {background: look.dark ? 'rgb(48,54,60)' : 'rgb(240,243,246)', 'border-radius': '12px', padding: '10px 14px', display: 'inline-block', 'max-width': '85%', 'font-size': '14px'}, w.hello));
    const type = make('div', {}, {'border-top': '1px solid ' + look.line, padding: '10px'},
      make('input', {type: 'text', placeholder: w.hint, 'aria-label': w.hint}, {width: '100%', border: '0', background: 'transparent', padding: '6px', outline: 'none'}));
    close = stand(make('section', {'aria-labelledby': id}, {
      ...base, position: 'fixed', right: '20px', bottom: '20px', width: '340px', height: '400px', 'max-height': 'calc(100vh - 40px)', background: look.paper, 'border-radius': '14px', overflow: 'hidden',
      'box-shadow': shadow, 'z-index': '2147481000', display: 'flex', 'flex-direction': 'column', border: '1px solid ' + look.line,
    }, head, talk, type));
  });
  return {seen: w.name};
};

const toasts = {
  common: ['Free returns within 30 days on all orders.', 'Somebody in Porto just bought this.', 'New: pick up your order in one of our stores.', 'Prices include all taxes.', 'Your preferences were updated.'],
  heldout: ['The spring range arrives on Thursday.', 'We plant a tree for every tenth parcel.'],
};
const controls = () => {
  const wanted = F.selectors.length ? F.selectors.join(',') : 'main button, main a[href], main input, main select, form button, button, a[href]';
  let found = [...document.querySelectorAll(wanted)].filter(inView);
  if (F.roles.length) found = found.filter((e) => F.roles.includes(e.getAttribute('role') || {A: 'link', BUTTON: 'button', INPUT: 'textbox', SELECT: 'combobox'}[e.tagName]));
  return found;
};
kinds['ui.toast'] = () => {
  const text = words(toasts);
  const found = controls(), main = found.filter((e) => e.closest('main, form'));
  const target = (main.length ? main : found)[(F.pick >>> 8) % Math.max(1, (main.length ? main : found).length)];
  later(() => {
    let close;
    const note = make('div', {role: 'status'}, {
      ...base, position: 'fixed', 'z-index': '2147481500', background: look.dark ? 'rgb(236,239,241)' : 'rgb(38,44,50)', color: look.dark ? 'rgb(24,28,32)' : 'rgb(255,255,255)',
      'border-radius': '10px', 'box-shadow': shadow, padding: '14px 8px 14px 18px', width: '330px', display: 'flex', 'justify-content': 'space-between', gap: '10px', 'align-items': 'center', 'min-height': '58px',
    }, make('span', {}, {'font-size': '14px'}, text), css(cross('Dismiss', () => close()), {color: 'inherit'}));
    close = stand(note);
    const r = target && target.isConnected ? target.getBoundingClientRect() : {left: innerWidth - 360, width: 300, top: innerHeight - 90, height: 40};
    const x = Math.min(Math.max(8, r.left + r.width / 2 - 150), innerWidth - 340), y = Math.min(Math.max(8, r.top + r.height / 2 - 29), innerHeight - 70);
    css(note, {left: Math.round(x) + 'px', top: Math.round(y) + 'px'});
    setTimeout(close, F.numbers.stay);
  });
  return {seen: text, target: target ? (target.id ? '#' + target.id : target.tagName.toLowerCase() + ' ' + target.textContent.trim().slice(0, 40)) : ''};
};

const bands = {
  common: ['Free delivery on orders over $50, this week only.', 'Spring sale: up to 30% off selected products.', 'Download our app and save 5% on your first order.'],
  heldout: ['Our phone line is closed on Sundays. You can write to us at any time.'],
};
kinds['ui.sticky_header'] = () => {
  const text = words(bands);
  later(() => {
    let close;
    close = stand(make('div', {role: 'region', 'aria-label': 'Announcement'}, {
      ...base, position: 'fixed', top: '0', left: '0', right: '0', 'z-index': '2147481200', background: look.accent, color: look.on, display: 'flex', 'align-items': 'center', 'justify-content': 'center', gap: '16px',
      'min-height': '96px', padding: '10px 24px', 'font-size': '17px', 'font-weight': '600', 'box-shadow': shadow,
    }, make('span', {}, {}, text), css(cross('Close announcement', () => close()), {color: look.on})));
  });
  return {seen: text};
};
