import { Heap } from "./heap.js";

// Neighbours among `parts` joined, as byte-pair encoding does: of all that make a part together those of the lowest rank first,
// of equal ones the leftmost, and again, until none do. `union(a, b)` is { rank, part }, or null. The
// pairs wait in a heap, so n parts take n log n steps.
export function joined(parts, union) {
  const standing = [...parts]; // what has been joined to its left neighbour is null
  const next = parts.map((_, i) => i + 1);
  const previous = parts.map((_, i) => i - 1);
  const waiting = new Heap((a, b) => a.rank - b.rank || a.left - b.left);
  const wait = (left) => {
    const right = next[left];
    const pair = [standing[left], standing[right]];
    const found = left >= 0 && right < parts.length ? union(...pair) : null;
    if (found) {
      waiting.push({ ...found, left, right, pair });
    }
  };
  parts.forEach((_, left) => wait(left));
  for (let first = waiting.pop(); first; first = waiting.pop()) {
    const { part, left, right, pair } = first;
    if (standing[left] !== pair[0] || standing[right] !== pair[1]) {
      continue; // one of them has been joined to another since
    }
    standing[left] = part;
    standing[right] = null;
    next[left] = next[right];
    if (next[left] < parts.length) {
      previous[next[left]] = left;
    }
    wait(previous[left]);
    wait(left);
  }
  return standing.filter((part) => part !== null);
}
