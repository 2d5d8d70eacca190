// P.about gives role and name of the element that an action would name, as an observation
// has them, which of the elements with this role and name it is, and which of those with
// this role; null when there is none.
P.about = (t) => {
  let el;
  try { el = P.find(t); } catch (e) { if (e instanceof P.Miss) return null; throw e; }
  const all = P.listed(null);
  for (let n = el; n && n.nodeType === 1; n = n.parentElement) {
    const me = all.find((x) => x.el === n);
    if (!me) continue;
    const alike = all.filter((x) => x.role === me.role);
    return {role: me.role, name: me.name, place: alike.filter((x) => x.name === me.name).indexOf(me), index: alike.indexOf(me), of: alike.length, tag: n.localName};
  }
  return null;
};
