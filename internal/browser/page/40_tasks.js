// What the page has still to do: timers, frames and observers that need frames. The
// driver asks for it after each action, to know how long a user would wait.

// Timers beyond this many links of a chain of timers are a clock of the page, not a
// consequence of the action.
const CHAIN = 3;
let link = 0;
const timers = newMap(); // id -> {due, link}
const unlink = () => { link = 0; };

stand(window, 'setTimeout', {
  apply: (f, self, args) => {
    const [task, delay, ...rest] = args;
    if (typeof task !== 'function') return apply(f, self, args);
    const mine = link + 1;
    const id = apply(f, self, [function (...a) {
      timers.delete(id);
      link = mine;
      // Promises that the task settles go on before this.
      later(unlink);
      return apply(task, this, a);
    }, delay, ...rest]);
    const wait = +delay > 0 ? +delay : 0;
    timers.set(id, {due: rawNow() + wait, link: mine});
    if (mine <= CHAIN && wait <= C.horizon) tell('dirty');
    return id;
  },
});
const forget = {apply: (f, self, args) => { timers.delete(args[0]); return apply(f, self, args); }};
stand(window, 'clearTimeout', forget);
stand(window, 'clearInterval', forget);

// A frame's time is real; callbacks get the page's time.
const frames = newSet();
stand(window, 'requestAnimationFrame', {
  apply: (f, self, args) => {
    const task = args[0];
    if (typeof task !== 'function') return apply(f, self, args);
    const id = apply(f, self, [() => { frames.delete(id); return apply(task, undefined, [elapsed()]); }]);
    frames.add(id);
    tell('dirty');
    return id;
  },
});
stand(window, 'cancelAnimationFrame', {
  apply: (f, self, args) => { frames.delete(args[0]); return apply(f, self, args); },
});

// Idle time is what is left of a frame; without frames there is always some.
if (window.requestIdleCallback) {
  const native = window.setTimeout;
  const idle = newMap();
  const Deadline = window.IdleDeadline;
  const proto = Deadline && Deadline.prototype;
  stand(window, 'requestIdleCallback', {
    apply: (f, self, args) => {
      const task = args[0];
      if (typeof task !== 'function') return apply(f, self, args);
      const id = apply(native, window, [() => {
        idle.delete(id);
        const d = Object.create(proto);
        defineProperty(d, 'didTimeout', {value: false});
        defineProperty(d, 'timeRemaining', {value: () => 12});
        apply(task, undefined, [d]);
      }, 1]);
      idle.set(id, 1);
      return id;
    },
  });
  const stop = window.clearTimeout;
  stand(window, 'cancelIdleCallback', {
    apply: (f, self, args) => { if (idle.has(args[0])) { idle.delete(args[0]); apply(stop, window, [args[0]]); } },
  });
}

// Observers report in frames only.
let observed = false;
const observing = {apply: (f, self, args) => { observed = true; tell('dirty'); return apply(f, self, args); }};
if (window.IntersectionObserver) stand(IntersectionObserver.prototype, 'observe', observing);
if (window.ResizeObserver) stand(ResizeObserver.prototype, 'observe', observing);

// Closed shadow roots are handed to our world, which has no other way to them.
stand(Element.prototype, 'attachShadow', {
  apply: (f, self, args) => {
    const root = apply(f, self, args);
    apply(dispatchEvent, window, [new FocusEventOf(C.secret + 's', {relatedTarget: root})]);
    return root;
  },
});

// A window that closes itself goes a moment later.
stand(window, 'close', {apply: (f, self, args) => { tell('closing'); return apply(f, self, args); }});

// nextTimer is how many ms ahead the last timer lies that a step waits for; -1: none.
const nextTimer = () => {
  const t = rawNow();
  let last = -1;
  timers.forEach((v) => {
    const ahead = v.due - t;
    if (v.link <= CHAIN && ahead <= C.horizon && ahead > last) last = max(0, ahead);
  });
  return last;
};
