// What is new in an observation: lines that the one before did not have.

/** compare marks each line of text as new or not, and lists the lines that went. */
export function compare(before, text) {
  const left = new Map();
  for (const l of lines(before)) left.set(l, (left.get(l) ?? 0) + 1);
  const out = lines(text).map((line) => {
    const n = left.get(line) ?? 0;
    if (n > 0) left.set(line, n - 1);
    return {line, fresh: before !== undefined && n === 0};
  });
  const gone = [];
  for (const l of lines(before)) {
    const n = left.get(l) ?? 0;
    if (n > 0) {
      gone.push(l);
      left.set(l, n - 1);
    }
  }
  return {lines: out, gone};
}

function lines(text) {
  return text ? text.split("\n") : [];
}
