// The shop's script. Pages work without it; with it, carts change in place, search
// suggests, stock is looked up, forms are checked before they are sent, and what
// cannot be undone is asked about first.
'use strict';

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
document.documentElement.classList.add('js');

// --- talking to the server ---

async function send(form) {
  const response = await fetch(form.action, {
    method: 'POST',
    headers: { Accept: 'application/json', 'X-Csrf-Token': document.body.dataset.csrf },
    body: new URLSearchParams(new FormData(form)),
  });
  const answer = await response.json();
  if (answer.location) location.assign(answer.location);
  return answer;
}

function toast(text, bad) {
  const note = document.createElement('p');
  note.className = bad ? 'toast bad' : 'toast';
  note.textContent = text;
  $('#toasts').append(note);
  setTimeout(() => note.remove(), 4000);
}

function showCount(n) {
  const badge = $('#cart-count');
  if (badge && n !== undefined) badge.textContent = n;
}

// --- the cart ---

document.addEventListener('submit', async event => {
  const form = event.target;
  if (!form.dataset.async || event.defaultPrevented) return;
  event.preventDefault();
  await change(form);
});

async function change(form) {
  const buttons = $$('button', form);
  buttons.forEach(b => { b.disabled = true; });
  try {
    const answer = await send(form);
    showCount(answer.count);
    if (answer.html !== undefined) replaceCart(answer.html);
    if (answer.message) toast(answer.message, !answer.ok);
  } catch {
    toast('The shop could not be reached. Please try again.', true);
  } finally {
    buttons.forEach(b => { b.disabled = false; });
  }
}

// replaceCart keeps the focus on the control that was used, if it is still there.
function replaceCart(html) {
  const body = $('#cart-body');
  if (!body) return;
  const focused = document.activeElement && document.activeElement.id;
  body.innerHTML = html;
  const again = focused && document.getElementById(focused);
  if (again) again.focus();
}

document.addEventListener('change', event => {
  const form = event.target.closest('form[data-submit-on-change]');
  if (form) form.requestSubmit();
});

// --- suggestions while typing ---

const search = $('#search'), suggestions = $('#suggestions');
let asked = 0, chosen = -1, waiting;

function closeSuggestions() {
  clearTimeout(waiting);
  asked++;
  suggestions.hidden = true;
  chosen = -1;
  search.setAttribute('aria-expanded', 'false');
  search.removeAttribute('aria-activedescendant');
}

async function suggest() {
  const turn = ++asked;
  const words = search.value.trim();
  if (words.length < 2) return closeSuggestions();
  const found = await (await fetch('/api/suggest?q=' + encodeURIComponent(words))).json();
  if (turn !== asked || document.activeElement !== search) return;
  suggestions.replaceChildren(...found.map((p, i) => {
    const row = document.createElement('li');
    row.id = 'suggestion-' + i;
    row.setAttribute('role', 'option');
    row.setAttribute('aria-selected', 'false');
    row.dataset.url = p.url;
    const name = document.createElement('span'), price = document.createElement('span');
    name.textContent = p.name;
    price.textContent = p.category + ' · ' + p.price;
    price.className = 'hint';
    row.append(name, price);
    return row;
  }));
  chosen = -1;
  suggestions.hidden = found.length === 0;
  search.setAttribute('aria-expanded', String(found.length > 0));
}

function choose(step) {
  const rows = $$('li', suggestions);
  if (!rows.length || suggestions.hidden) return;
  chosen = (chosen + step + rows.length) % rows.length;
  rows.forEach((row, i) => row.setAttribute('aria-selected', String(i === chosen)));
  search.setAttribute('aria-activedescendant', rows[chosen].id);
}

search.addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => suggest().catch(closeSuggestions), 150);
});
search.addEventListener('keydown', event => {
  if (event.key === 'ArrowDown') { event.preventDefault(); choose(1); }
  if (event.key === 'ArrowUp') { event.preventDefault(); choose(-1); }
  if (event.key === 'Escape') closeSuggestions();
  if (event.key === 'Enter' && chosen >= 0) {
    event.preventDefault();
    location.assign($$('li', suggestions)[chosen].dataset.url);
  }
});
search.addEventListener('blur', closeSuggestions);
suggestions.addEventListener('mousedown', event => {
  const row = event.target.closest('li');
  event.preventDefault(); // the field keeps the focus until the click is over
  if (row) row.classList.add('pressed');
});
suggestions.addEventListener('click', event => {
  const row = event.target.closest('li');
  if (row) location.assign(row.dataset.url);
});

// --- stock of the chosen article ---

const addForm = $('#add-form');
let stockTurn = 0;

async function lookUpStock() {
  const turn = ++stockTurn;
  const query = new URLSearchParams({ product: $('.product').dataset.slug });
  for (const name of ['size', 'colour']) query.set(name, addForm.elements[name] ? addForm.elements[name].value : '');
  const line = $('#stock');
  line.textContent = 'Looking up the stock…';
  try {
    const response = await fetch('/api/stock?' + query, { headers: { Accept: 'application/json' } });
    const answer = await response.json();
    if (turn === stockTurn) showStock(response.ok ? answer : { available: false, text: 'Not made in this combination' });
  } catch {
    if (turn === stockTurn) line.textContent = 'The stock could not be looked up.';
  }
}

function showStock(answer) {
  const line = $('#stock');
  line.textContent = answer.text;
  line.classList.toggle('out', !answer.available);
  $('#add-to-cart').disabled = !answer.available;
}

if (addForm) {
  for (const name of ['size', 'colour']) {
    if (addForm.elements[name]) addForm.elements[name].addEventListener('change', lookUpStock);
  }
  const sold = $('#stock').textContent === 'Sold out';
  showStock({ available: !sold, text: $('#stock').textContent });
}

// --- forms are checked before they are sent ---

function errorOf(field) {
  const key = field.type === 'radio' ? field.name : field.id;
  return document.getElementById(key + '-error');
}

function checkField(field) {
  const line = errorOf(field);
  const good = field.validity.valid;
  if (field.type !== 'radio') field.setAttribute('aria-invalid', String(!good));
  if (line) {
    line.hidden = good;
    line.textContent = good ? '' : field.title && field.validity.patternMismatch ? field.title + '.' : field.validationMessage;
  }
  return good;
}

for (const form of $$('form[data-validate]')) {
  form.noValidate = true;
  const fields = [...form.elements].filter(f => f.willValidate && f.type !== 'submit');
  for (const field of fields) field.addEventListener('change', () => checkField(field));
  form.addEventListener('submit', event => {
    const wrong = fields.filter(f => !checkField(f));
    if (!wrong.length) return;
    event.preventDefault();
    wrong[0].focus();
  });
}

// --- a question before what cannot be undone ---

const dialog = $('#confirm');
let asking = null;

document.addEventListener('submit', event => {
  const form = event.target;
  if (!form.dataset.confirm || form === asking) return;
  event.preventDefault();
  asking = form;
  $('#confirm-text').textContent = form.dataset.confirm;
  $('#confirm-yes').textContent = form.dataset.confirmYes;
  dialog.showModal();
}, true);
$('#confirm-no').addEventListener('click', () => dialog.close());
$('#confirm-yes').addEventListener('click', () => {
  const form = asking;
  dialog.close('yes');
  form.submit();
});
dialog.addEventListener('close', () => { if (dialog.returnValue !== 'yes') asking = null; });

// --- a form that must be sent once ---

for (const form of $$('form[data-once]')) {
  form.addEventListener('submit', event => {
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = 'yes';
    const button = $('button', form);
    button.setAttribute('aria-disabled', 'true');
    button.textContent = 'One moment…';
  });
}
// A page that comes back from the browser's memory is ready to be sent again.
addEventListener('pageshow', event => { if (event.persisted) location.reload(); });
