// Random numbers of this document. They depend on the seed, the tab, the place of the
// frame, the address and the time, so two documents of an episode do not draw the same
// identifiers, and the same episode draws the same again.
const place = (() => {
  const path = [];
  for (let w = window; w !== w.parent; w = w.parent) {
    let i = 0;
    while (i < w.parent.length && w.parent[i] !== w) i++;
    path.push(i);
  }
  return path.join('.');
})();

const draw = (() => {
  const text = [C.seed, C.tab, place, location.href, now() - C.epoch].join('|');
  let a = 1779033703, b = 3144134277, c = 1013904242, d = 2773480762;
  for (let i = 0; i < text.length; i++) {
    const k = text.charCodeAt(i);
    a = b ^ Math.imul(a ^ k, 597399067);
    b = c ^ Math.imul(b ^ k, 2869860233);
    c = d ^ Math.imul(c ^ k, 951274213);
    d = a ^ Math.imul(d ^ k, 2716044179);
  }
  const next = () => { // sfc32
    const t = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 20; i++) next();
  return next;
})();

stand(Math, 'random', {apply: () => ((draw() >>> 5) * 67108864 + (draw() >>> 6)) / 9007199254740992});

if (window.Crypto) {
  const U8 = Uint8Array;
  const field = (n) => getOwnPropertyDescriptor(Object.getPrototypeOf(U8.prototype), n).get;
  const bufferOf = field('buffer'), offsetOf = field('byteOffset'), lengthOf = field('byteLength');
  const fill = (bytes) => { for (let i = 0, w = 0; i < bytes.length; i++, w >>>= 8) { if (i % 4 === 0) w = draw(); bytes[i] = w; } };
  stand(Crypto.prototype, 'getRandomValues', {
    apply: (f, self, args) => {
      const view = apply(f, self, args); // it checks the argument
      fill(new U8(apply(bufferOf, view, []), apply(offsetOf, view, []), apply(lengthOf, view, [])));
      return view;
    },
  });
  const hex = [];
  for (let i = 0; i < 256; i++) hex.push((i + 256).toString(16).slice(1));
  stand(Crypto.prototype, 'randomUUID', {
    apply: (f, self, args) => {
      apply(f, self, args);
      const b = new U8(16);
      fill(b);
      b[6] = b[6] & 15 | 64;
      b[8] = b[8] & 63 | 128;
      let s = '';
      for (let i = 0; i < 16; i++) s += hex[b[i]] + (i === 3 || i === 5 || i === 7 || i === 9 ? '-' : '');
      return s;
    },
  });
}
