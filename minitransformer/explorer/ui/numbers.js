// Numbers as they are written in sentences.

// Two numbers and their difference in words: with so many digits that the difference shows two
// figures, and the difference is that of the numbers as they are shown.
export function compared(before, after) {
  const change = Math.abs(after - before);
  const needed = change > 0 ? 1 - Math.floor(Math.log10(change)) : 0;
  const digits = Math.min(Math.max(needed, 3), 9);
  const difference = Number(after.toFixed(digits)) - Number(before.toFixed(digits));
  const words = { before, after, difference };
  return Object.fromEntries(Object.entries(words).map(([key, x]) => [key, signed(x, digits)]));
}

export function signed(number, digits = 3) {
  const text = Math.abs(number).toFixed(digits);
  return number < 0 && Number(text) !== 0 ? `−${text}` : text;
}

export function percent(probability) {
  const value = 100 * probability;
  if (value > 0 && value < 0.0001) {
    return "<\u00a00.0001\u00a0%"; // no power of ten, which not everybody reads
  }
  return `${value >= 10 ? value.toFixed(0) : value.toPrecision(2)}\u00a0%`; // on one line
}

// A whole number as all languages can read it: 1 051 136. Of the others the point is decimal.
export function in_groups(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
