// The page's clock: the episode's epoch plus the virtual milliseconds since it began,
// whole, and the same however long the browser has lived.
const DateOf = Date;
const rawNow = Date.now;
const {round, max} = Math;
const now = () => C.epoch + round(rawNow() - C.start);

const DateHere = stand(window, 'Date', {
  construct: (f, args, as) => construct(f, args.length ? args : [now()], as === DateHere ? f : as),
  apply: () => new DateOf(now()).toString(),
});
defineProperty(DateOf.prototype, 'constructor', {value: DateHere, writable: true, configurable: true});
stand(DateOf, 'now', {apply: () => now()});

const born = now();
const elapsed = () => now() - born;
stand(Performance.prototype, 'now', {
  apply: (f, self, args) => { apply(f, self, args); return elapsed(); },
});
stand(Performance.prototype, 'timeOrigin', {
  apply: (f, self, args) => { apply(f, self, args); return born; },
});
const stamps = newWeakMap();
stand(Event.prototype, 'timeStamp', {
  apply: (f, self, args) => {
    apply(f, self, args);
    let t = stamps.get(self);
    if (t === undefined) stamps.set(self, t = elapsed());
    return t;
  },
});
// Entries carry real times of the network and of frames; what is rounded says no less.
stand(PerformanceEntry.prototype, 'startTime', {apply: (f, self, args) => round(apply(f, self, args))});
stand(PerformanceEntry.prototype, 'duration', {apply: (f, self, args) => round(apply(f, self, args))});
