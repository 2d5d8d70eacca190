// Requests of scripts. Virtual time goes on when a response has arrived at the network
// layer, which may be before the page gets it; so the driver waits for the page's side,
// and a body is read to its end before the page sees the response.
let step = 0;
let serial = 0;
const requests = newMap(); // serial -> {step, name, stream}
let waiting = false;

const nameOf = (method, url) => {
  try { const u = new URL(url, document.baseURI); return method + ' ' + u.origin + u.pathname; } catch { return method + ' ' + url; }
};
const begin = (method, url) => {
  const id = ++serial;
  requests.set(id, {step, name: nameOf(method, url), stream: false});
  tell('dirty');
  return id;
};
const end = (id) => {
  if (!requests.has(id)) return;
  requests.delete(id);
  answerIdle();
};
const streams = (id) => {
  const r = requests.get(id);
  if (!r || r.stream) return;
  r.stream = true;
  tell('stream');
  answerIdle();
};
// count gives [requests of this step, others that are still open, their names, how many
// of this step's are soft].
const count = () => {
  let mine = 0, others = 0, soft = 0;
  let names = '';
  requests.forEach((r) => {
    names += r.name + '\n';
    if (r.stream || r.late || r.step !== step) others++; else { mine++; if (r.soft) soft++; }
  });
  return [mine, others, names, soft];
};
// mark says of the oldest such request that it is held up in virtual time, or no more. It
// is of the step in which its time comes.
const mark = ({name, late}) => {
  let found = null;
  requests.forEach((r) => { if (!found && r.name === name && !!r.late !== late) found = r; });
  if (found) { found.late = late; if (!late) found.step = step; }
  answerIdle();
  return '';
};
const answerIdle = () => {
  if (!waiting || count()[0] > 0) return;
  waiting = false;
  reply('idle');
};

const bodies = newWeakMap(); // response -> its whole body
const held = newSet();       // bodies that are being read: functions that let the page have them as they come
const eternal = /^(text\/event-stream|application\/x-ndjson|application\/stream\+json|multipart\/x-mixed-replace)/;
const {clone, arrayBuffer} = Response.prototype;
const {get: header} = Headers.prototype;
const headersOf = getOwnPropertyDescriptor(Response.prototype, 'headers').get;
const bodyUsed = getOwnPropertyDescriptor(Response.prototype, 'bodyUsed').get;
const {then} = Promise.prototype;
const on = (p, f, g) => apply(then, p, [f, g]);

// whole resolves when the body of r is here, or at once when it may never end.
const whole = (r, id) => {
  if (eternal.test(apply(header, apply(headersOf, r, []), ['content-type']) || '')) { streams(id); return r; }
  return new Promise((resolve) => {
    const give = () => { held.delete(give); resolve(r); };
    held.add(give);
    on(apply(arrayBuffer, apply(clone, r, []), []), (b) => { bodies.set(r, b); give(); end(id); }, () => { give(); end(id); });
  });
};

const RequestOf = Request;
const requestURL = getOwnPropertyDescriptor(Request.prototype, 'url').get;
const requestMethod = getOwnPropertyDescriptor(Request.prototype, 'method').get;
stand(window, 'fetch', {
  apply: (f, self, args) => {
    const [to, options] = args;
    const isRequest = to instanceof RequestOf;
    const id = begin((options && options.method) || (isRequest ? apply(requestMethod, to, []) : 'GET'), isRequest ? apply(requestURL, to, []) : to);
    return on(apply(f, self, args), (r) => whole(r, id), (e) => { end(id); throw e; });
  },
});
const decoder = new TextDecoder();
const decode = decoder.decode.bind(decoder);
const {parse} = JSON;
// A body that is here is given without going through the event loop again. The native
// call still marks the response as used and refuses one that is.
const reader = (make) => ({
  apply: (f, self, args) => {
    const b = bodies.get(self);
    if (!b || apply(bodyUsed, self, [])) return apply(f, self, args);
    const p = apply(f, self, args);
    return new Promise((resolve, reject) => {
      try { resolve(make(b)); on(p, () => 0, () => 0); } catch { on(p, resolve, reject); }
    });
  },
});
stand(Response.prototype, 'text', reader((b) => decode(b)));
stand(Response.prototype, 'json', reader((b) => parse(decode(b))));
stand(Response.prototype, 'arrayBuffer', reader((b) => b.slice(0)));
stand(Response.prototype, 'clone', {
  apply: (f, self, args) => {
    const c = apply(f, self, args);
    const b = bodies.get(self);
    if (b) bodies.set(c, b);
    return c;
  },
});

const opened = newWeakMap();
stand(XMLHttpRequest.prototype, 'open', {
  apply: (f, self, args) => { opened.set(self, {method: args[0], url: args[1], async: args.length < 3 || !!args[2]}); return apply(f, self, args); },
});
stand(XMLHttpRequest.prototype, 'send', {
  apply: (f, self, args) => {
    const o = opened.get(self);
    if (!o || !o.async) return apply(f, self, args);
    const id = begin(o.method, o.url);
    apply(addEventListener, self, ['loadend', () => later(() => end(id)), {once: true}]);
    try { return apply(f, self, args); } catch (e) { end(id); throw e; }
  },
});

if (window.EventSource) {
  const {close} = EventSource.prototype;
  const sources = newWeakMap();
  const Here = stand(window, 'EventSource', {
    construct: (f, args, as) => {
      const es = construct(f, args, as === Here ? f : as);
      const id = begin('EventSource', args[0]);
      sources.set(es, id);
      streams(id);
      return es;
    },
  });
  defineProperty(EventSource.prototype, 'constructor', {value: Here, writable: true, configurable: true});
  stand(EventSource.prototype, 'close', {apply: (f, self, args) => { end(sources.get(self)); return apply(f, self, args); }});
}
if (window.WebSocket) {
  const Here = stand(window, 'WebSocket', {
    construct: (f, args, as) => {
      const ws = construct(f, args, as === Here ? f : as);
      const id = begin('WebSocket', args[0]);
      apply(addEventListener, ws, ['close', () => end(id)]);
      streams(id);
      return ws;
    },
  });
  defineProperty(WebSocket.prototype, 'constructor', {value: Here, writable: true, configurable: true});
}
