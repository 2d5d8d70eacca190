// The agent's own world: the same DOM as the page's, other globals. No page sees it.
// Everything hangs on P. C holds the secret and the origins that pages may go to.
//
// This part runs in every frame; the rest only in the frame that the driver talks to.
const tell = globalThis[C.secret];
delete globalThis[C.secret];

// Navigations to places that are not allowed are stopped before they start, so the
// page stays as it is. A browser started with the right flags could not reach them
// anyway, but would leave the page for an error page.
const mayGo = (url) => {
  let u;
  try { u = new URL(url, document.baseURI); } catch { return true; }
  if (u.protocol === 'about:' || u.protocol === 'javascript:') return true;
  if (u.protocol === 'blob:' || u.protocol === 'data:') return window !== window.top;
  if (u.protocol !== 'http:' && u.protocol !== 'https:') return false;
  return !C.allow || C.allow.includes(u.origin);
};
if (window.navigation) navigation.addEventListener('navigate', (e) => {
  if (e.cancelable && !mayGo(e.destination.url)) {
    e.preventDefault();
    // What a frame of the page would have loaded is no failure of the agent.
    if (tell && (window === window.top || e.userInitiated)) tell('blocked ' + e.destination.url);
  }
});

// Input is watched at the outermost place, before any listener of the page.
const P = globalThis.P = {__proto__: null, watch: null, roots: new WeakMap(), rooted() {}};
const heard = (e) => {
  if (!e.isTrusted) return;
  // The highest frame of the same origin is the one that the driver has armed.
  let w = window, highest = P;
  try { while (w !== w.parent && w.parent.P) { w = w.parent; highest = w.P; } } catch { /* another origin above */ }
  if (highest.watch) highest.watch(e);
};
for (const t of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'dblclick', 'contextmenu', 'mousemove', 'pointermove', 'mouseover', 'keydown', 'keyup', 'beforeinput', 'input', 'wheel', 'dragstart', 'drop'])
  window.addEventListener(t, heard, {capture: true, passive: t === 'wheel'});

// Closed shadow roots come from the page's world as they are made.
window.addEventListener(C.secret + 's', (e) => {
  const r = e.relatedTarget;
  if (r && r.host) P.roots.set(r.host, r);
  P.rooted();
});

// P.shadow is the shadow root of an element, open or closed, or null.
P.shadow = (el) => el.shadowRoot || P.roots.get(el) || null;

// P.ask puts a question to the page's world of this frame.
let asking = false, answer = null;
P.ask = (name) => {
  asking = true;
  answer = null;
  window.dispatchEvent(new CustomEvent(C.secret + 'q', {detail: name}));
  asking = false;
  return answer;
};
P.idle = null;
window.addEventListener(C.secret + 'a', (e) => {
  if (asking && answer === null) answer = e.detail;
  if (e.detail === 'idle') { const f = P.idle; P.idle = null; if (f) f(); }
});
