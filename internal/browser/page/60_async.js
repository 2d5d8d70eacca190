// Work that other threads and processes do for the page: storage, hashing, decoding.
// Virtual time knows nothing of it, so a step waits for it as for a request. It is
// "soft": some of it goes on only while virtual time does.
const started = (name) => {
  const id = ++serial;
  requests.set(id, {step, name, stream: false, soft: true});
  tell('dirty');
  return id;
};

const promised = (owner, ...names) => {
  if (!owner) return;
  for (const n of names) {
    stand(owner, n, {
      apply: (f, self, args) => {
        const p = apply(f, self, args);
        const id = started(n);
        const over = () => end(id);
        try { on(p, over, over); } catch { over(); }
        return p;
      },
    });
  }
};
const proto = (name) => window[name] && window[name].prototype;
promised(proto('Blob'), 'text', 'arrayBuffer', 'bytes');
promised(proto('SubtleCrypto'), 'digest', 'sign', 'verify', 'encrypt', 'decrypt', 'generateKey', 'deriveKey', 'deriveBits', 'importKey', 'exportKey', 'wrapKey', 'unwrapKey');
promised(proto('CacheStorage'), 'open', 'match', 'has', 'delete', 'keys');
promised(proto('Cache'), 'match', 'matchAll', 'add', 'addAll', 'put', 'delete', 'keys');
promised(proto('ServiceWorkerContainer'), 'register', 'getRegistration', 'getRegistrations');
promised(proto('IDBFactory'), 'databases');
promised(proto('HTMLImageElement'), 'decode');
promised(proto('StorageManager'), 'estimate', 'persist', 'persisted', 'getDirectory');
promised(window, 'createImageBitmap');
promised(window.WebAssembly, 'compile', 'instantiate', 'compileStreaming', 'instantiateStreaming');

// Events that end what an object was asked for. The page's own listeners come first.
const evented = (owner, names, types, target = (r) => r) => {
  if (!owner) return;
  for (const n of names) {
    if (!getOwnPropertyDescriptor(owner, n)) continue;
    stand(owner, n, {
      apply: (f, self, args) => {
        const r = apply(f, self, args);
        const on = target(r, self);
        if (!on) return r;
        const id = started(n);
        const over = () => later(() => end(id));
        for (const t of types) apply(addEventListener, on, [t, over, {once: true}]);
        return r;
      },
    });
  }
};
const results = ['success', 'error', 'blocked'];
evented(proto('IDBFactory'), ['open', 'deleteDatabase'], results);
evented(proto('IDBObjectStore'), ['add', 'put', 'get', 'getAll', 'getAllKeys', 'getKey', 'delete', 'clear', 'count', 'openCursor', 'openKeyCursor'], results);
evented(proto('IDBIndex'), ['get', 'getAll', 'getAllKeys', 'getKey', 'count', 'openCursor', 'openKeyCursor'], results);
evented(proto('IDBDatabase'), ['transaction'], ['complete', 'abort', 'error']);
evented(proto('FileReader'), ['readAsText', 'readAsDataURL', 'readAsArrayBuffer', 'readAsBinaryString'], ['loadend'], (r, self) => self);
