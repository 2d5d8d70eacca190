// Windows in front of the page.
// Tab goes round within one, as in every window that is modal.
const cycle = (box, e) => {
  const all = [...box.querySelectorAll('button, input')], at = all.indexOf(document.activeElement);
  const to = e.shiftKey ? (at <= 0 ? all.length - 1 : -1) : (at === all.length - 1 ? 0 : -1);
  if (to >= 0) { e.preventDefault(); all[to].focus(); }
};
const inWindow = (w, actions, onDark) => {
  const id = fresh('title');
  const before = document.activeElement;
  let close;
  const bye = (f) => () => { close(); if (before && before.isConnected && before !== document.body) before.focus({preventScroll: true}); if (f) f(); };
  const box = make('div', {role: 'dialog', 'aria-modal': 'true', 'aria-labelledby': id, tabindex: '-1'}, {
    ...base, background: look.paper, 'border-radius': '14px', 'box-shadow': shadow, padding: '26px 28px', width: w.wide ? '520px' : '430px',
    'max-width': 'calc(100vw - 32px)', 'max-height': 'calc(100vh - 32px)', overflow: 'auto', position: 'relative', outline: 'none', border: '1px solid ' + look.line,
  });
  if (w.close) {
    const x = cross(w.close, bye());
    css(x, {position: 'absolute', top: '12px', right: '12px'});
    box.append(x);
  }
  box.append(make('h2', {id}, {'font-size': '21px', 'font-weight': '700', 'line-height': '1.25', margin: w.close ? '0 34px 8px 0' : '0 0 8px', color: look.ink}, w.title));
  box.append(make('p', {}, {margin: '0 0 16px', color: look.soft}, w.text));
  if (w.field) {
    const f = make('input', {type: w.field.type || 'text', placeholder: w.field.hint, 'aria-label': w.field.name}, {
      width: '100%', padding: '10px 12px', border: '1px solid ' + look.line, 'border-radius': look.round, background: look.dark ? 'rgb(24,27,30)' : 'rgb(255,255,255)', margin: '0 0 16px',
    });
    box.append(f);
  }
  if (w.scale) {
    const row = make('div', {role: 'group', 'aria-label': w.title}, {display: 'flex', gap: '6px', margin: '0 0 18px', 'flex-wrap': 'wrap'});
    const many = w.scale.length > 7;
    for (const n of w.scale) row.append(css(button(n, false, bye()), many ? {padding: '8px 2px', flex: '1 1 30px'} : {padding: '8px 14px', 'min-width': '40px'}));
    box.append(row);
  }
  const row = make('div', {}, {display: 'flex', gap: '10px', 'flex-wrap': 'wrap', 'justify-content': w.right ? 'flex-end' : 'flex-start'});
  for (const [text, primary, f] of actions) row.append(button(text, primary, bye(f)));
  box.append(row);
  const veil = make('div', {}, {
    position: 'fixed', inset: '0', 'z-index': '2147483000', background: look.dark ? 'rgba(0,0,0,.6)' : 'rgba(16,24,32,.45)',
    display: 'flex', 'align-items': 'center', 'justify-content': 'center', padding: '16px',
  }, box);
  veil.addEventListener('keydown', (e) => {
    if (e.key === 'Tab') cycle(box, e);
    if (e.key === 'Escape' && w.close) { e.stopPropagation(); bye()(); }
  });
  close = stand(veil);
  box.focus({preventScroll: true});
  return w.title;
};

const newsletter = {
  common: [
    {title: 'Get 10% off your first order', text: 'Join our newsletter for new arrivals and offers, about twice a month.', field: {type: 'email', hint: 'you@example.com', name: 'Your e-mail address'}, yes: 'Sign me up', no: 'No thanks', close: 'Close'},
    {title: 'Stay in the loop', text: 'Be the first to hear about new products and seasonal sales.', field: {type: 'email', hint: 'E-mail address', name: 'E-mail address'}, yes: 'Subscribe', no: 'Maybe later', close: 'Close'},
    {title: 'Before you go on', text: 'Subscribers hear about price drops first. You can unsubscribe at any time.', field: {type: 'email', hint: 'name@example.com', name: 'E-mail'}, yes: 'Keep me posted', no: 'Not now', close: 'Close this window'},
    {title: 'A little something for you', text: 'Free shipping on your next order when you join our mailing list.', field: {type: 'email', hint: 'Your e-mail', name: 'Your e-mail'}, yes: 'Get free shipping', no: 'No, thank you', close: 'Close'},
  ],
  heldout: [
    {title: 'Hear from us first', text: 'One letter a month about new pieces and how they are made.', field: {type: 'email', hint: 'Where may we write to?', name: 'Where may we write to?'}, yes: 'Count me in', no: 'I would rather browse', close: 'Hide this'},
    {title: 'Friends of the house', text: 'Leave an address and we let you know when favourites return.', field: {type: 'email', hint: 'name@domain.com', name: 'Your address'}, yes: 'Let me know', no: 'Another time', close: 'Hide'},
  ],
};
kinds['ui.newsletter'] = () => { const w = words(newsletter); later(() => inWindow(w, [[w.yes, true], [w.no, false]])); return {seen: w.title}; };

const survey = {
  common: [
    {title: 'How are we doing?', text: 'Tell us how you like shopping with us. It takes one click.', scale: ['1', '2', '3', '4', '5'], no: 'Skip', close: 'Close'},
    {title: 'Quick question', text: 'How likely are you to recommend us to a friend?', scale: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10'], no: 'Not now', close: 'Close', wide: true},
    {title: 'Help us improve', text: 'Did you find what you were looking for today?', scale: ['Yes', 'Partly', 'No'], no: 'Ask me later', close: 'Close survey'},
  ],
  heldout: [
    {title: 'One minute for us?', text: 'We read every answer. What do you make of the new layout?', scale: ['Good', 'All right', 'Poor'], no: 'I will pass', close: 'Hide this'},
    {title: 'Was this page useful?', text: 'Your answer helps us to make it better.', scale: ['It was', 'It was not'], no: 'No opinion', close: 'Hide'},
  ],
};
kinds['ui.survey'] = () => { const w = words(survey); later(() => inWindow(w, [[w.no, false]])); return {seen: w.title}; };

const session = {
  common: [
    {title: 'Are you still there?', text: 'For your security we will sign you out in 2 minutes.', yes: 'Stay signed in'},
    {title: 'Your session is about to expire', text: 'You have been inactive for a while. Do you want to continue?', yes: 'Continue session'},
    {title: 'Session timeout', text: 'You will be signed out soon because of inactivity.', yes: 'Keep me signed in'},
  ],
  heldout: [{title: 'Still with us?', text: 'To protect your account we close idle visits. Shall we keep yours open?', yes: 'Keep it open'}],
};
kinds['ui.session_warning'] = () => { const w = words(session); later(() => inWindow({...w, right: true}, [[w.yes, true]])); return {seen: w.title}; };

const sure = {
  common: [
    {title: 'Please confirm', text: 'Do you want to go ahead with this?', yes: 'Continue', no: 'Cancel'},
    {title: 'Are you sure?', text: 'Please check your entries once more before you proceed.', yes: 'Yes, continue', no: 'Go back'},
    {title: 'One last check', text: 'This will be saved to your account.', yes: 'Proceed', no: 'Cancel'},
  ],
  heldout: [{title: 'Ready to go?', text: 'We will act on this right away.', yes: 'Go ahead', no: 'Not yet'}],
};
// The first press of a button of a form asks first; going ahead presses it again.
kinds['ui.confirm'] = () => {
  const w = words(sure);
  const ask = (e) => {
    const b = e.target.closest && e.target.closest('button, input[type=submit]');
    if (!b || !b.form || b.form.method !== 'post' || b.closest('dialog') || b.type === 'button' || b.disabled) return;
    document.removeEventListener('click', ask, true);
    e.preventDefault();
    e.stopImmediatePropagation();
    inWindow({...w, right: true}, [[w.no, false, () => document.addEventListener('click', ask, true)], [w.yes, true, () => { if (b.isConnected) b.click(); }]]);
  };
  if (!document.querySelector('form[method=post] button')) return null;
  document.addEventListener('click', ask, true);
  return {seen: w.title + ' (when a form is sent)'};
};
