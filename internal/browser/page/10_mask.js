// Runs in the page's own world before any script of the page. Everything that it needs
// later is taken now, since a page may replace any global. What it replaces keeps its
// name, its length, its property attributes and its source text ("[native code]").
const {apply, construct, defineProperty, getOwnPropertyDescriptor} = Reflect;
const own = (o, ...names) => { for (const n of names) defineProperty(o, n, {value: o[n]}); return o; };
const newMap = () => own(new Map(), 'get', 'set', 'delete', 'has', 'forEach', 'clear', 'keys');
const newWeakMap = () => own(new WeakMap(), 'get', 'set', 'has');
const newSet = () => own(new Set(), 'add', 'delete', 'has', 'clear', 'forEach');
const natives = newWeakMap(); // what stands in the page -> what it stands for

// stand puts a proxy of owner[name] in its place.
const stand = (owner, name, traps) => {
  const d = getOwnPropertyDescriptor(owner, name);
  if (!d) return null;
  const key = d.value ? 'value' : 'get';
  const f = new Proxy(d[key], traps);
  natives.set(f, d[key]);
  d[key] = f;
  defineProperty(owner, name, d);
  return f;
};

stand(Function.prototype, 'toString', {
  apply: (f, self, args) => apply(f, natives.get(self) || self, args),
});

const {addEventListener, dispatchEvent} = EventTarget.prototype;
const queue = window.queueMicrotask;
const later = (f) => apply(queue, window, [f]);
const CustomEventOf = CustomEvent;
const FocusEventOf = FocusEvent;

// tell reports to the driver; at most once for each kind until the driver has asked.
const binding = window[C.secret];
delete window[C.secret];
const told = newSet();
const tell = (what) => {
  if (!binding || told.has(what)) return;
  told.add(what);
  binding(what);
};

// Commands come from our isolated world as events that no page can name.
const commands = {__proto__: null};
apply(addEventListener, window, [C.secret + 'q', (e) => {
  const f = commands[e.detail];
  if (f) reply(f());
  else if (e.detail && e.detail.name) reply(mark(e.detail));
}]);
const reply = (v) => apply(dispatchEvent, window, [new CustomEventOf(C.secret + 'a', {detail: v})]);
