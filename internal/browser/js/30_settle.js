// What the page has still to do, summed over its frames.

// P.rest ends what moves for show: finite animations jump to their end, which makes
// their end events due in the next frame. Endless ones stand still, as time does.
P.rest = () => {
  let ended = 0;
  const trees = [];
  for (const w of P.windows()) trees.push(w.document);
  for (const d of trees) {
    for (const a of d.getAnimations()) {
      if (a.playState === 'finished' || a.playState === 'idle' || !a.effect) continue;
      const end = a.effect.getComputedTiming().endTime;
      if (end === Infinity || a.playbackRate === 0) continue;
      try { a.finish(); ended++; } catch { /* it has no end that can be reached */ }
    }
  }
  return ended;
};

const sum = () => {
  const s = {mine: 0, soft: 0, others: 0, timer: -1, raf: 0, observers: 0, names: [], title: document.title.slice(0, 300).toWellFormed()};
  for (const w of P.windows()) {
    const t = w.P.ask('state');
    if (t === null) continue;
    const [line, ...names] = t.split('\n');
    const [mine, others, timer, raf, observers, soft] = line.split(' ');
    s.mine += +mine; s.others += +others; s.timer = Math.max(s.timer, +timer); s.raf += +raf; s.observers += +observers; s.soft += +soft;
    for (const n of names) if (n && s.names.length < 20) s.names.push(n);
  }
  return s;
};

// P.state gives the page's open work. With requests of this step open it answers when
// they have ended, and then only that it should be asked again: what the page does with
// the answers comes after.
P.work = () => {
  const s = sum();
  s.ended = P.rest();
  return s;
};
P.state = (arrived) => {
  const s = P.work();
  if (arrived) s.arrived = P.arrived();
  if (s.mine === 0) return s;
  if (s.mine === s.soft) return {again: true, soft: s.soft, ended: s.ended};
  return P.quiet().then(() => ({again: true, soft: 0, ended: s.ended}));
};
// P.after is P.state(1) for a question that was sent together with so many clicks: it may
// have come before them. Then, and with requests open, it says only that it be asked again.
P.after = (clicks) => {
  if (P.released() < clicks) return {again: true, ended: 0};
  const s = P.work();
  if (s.mine > 0) return {again: true, ended: s.ended};
  s.arrived = P.arrived();
  return s;
};
// P.quiet waits for the end of the step's requests.
P.quiet = () => new Promise((resolve) => {
  const again = () => {
    if (P.wake === again) P.wake = null;
    resolve(1);
  };
  P.wake = again;
  // A frame may go away with its request: then the bound in real time ends the wait.
  for (const w of P.windows()) if (w.P.ask('idle') === 'wait') w.P.idle = again;
});

// P.release gives up on the requests that are open now: they count as streams from here on.
P.release = () => {
  for (const w of P.windows()) w.P.ask('release');
  if (P.wake) P.wake();
  return 1;
};
P.wake = null;

// P.held and P.freed tell of requests that are held up in virtual time.
P.held = (name) => { for (const w of P.windows()) w.P.ask({name, late: true}); };
P.freed = (name) => { for (const w of P.windows()) w.P.ask({name, late: false}); };
