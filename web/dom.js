// Elements are made here and nowhere else, and whatever a recorded page said becomes a text
// node. Nothing in the dashboard turns a string into markup.

const svgNamespace = "http://www.w3.org/2000/svg";

/** h makes an element: h("p", {class: "x", onclick: f}, "text", child, [children]). */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** s is h for SVG. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), props, children);
}

function fill(el, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [k, v] of Object.entries(value)) el.style.setProperty(k, v);
    else if (name === "href") el.setAttribute("href", ours(value));
    else el.setAttribute(name, value === true ? "" : String(value));
  }
  add(el, children);
  return el;
}

// Only our own routes are links: an address out of a recorded page is shown, never followed.
function ours(address) {
  return String(address).startsWith("#/") ? address : "#/";
}

function add(el, children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
}

/** put replaces what an element holds. */
export function put(el, ...children) {
  el.replaceChildren();
  add(el, children);
  return el;
}

/** heads are the column heads of a table; "#" before a name is for columns of numbers. */
export function heads(...names) {
  return h("thead", {}, h("tr", {}, names.map((n) => h("th", {scope: "col", class: n.startsWith("#") ? "num" : undefined}, n.replace("#", "")))));
}

/** say tells it to people who do not see the page. */
export function say(text) {
  document.getElementById("say").textContent = text;
}
