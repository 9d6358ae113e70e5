// A binary heap: what is taken out is the least of all that was put in, by `compare`, as for sort.

export class Heap {
  constructor(compare) {
    this.compare = compare;
    this.items = []; // each before its children, which are at 2 i + 1 and 2 i + 2
  }

  push(item) {
    const { items, compare } = this;
    let i = items.push(item) - 1;
    for (let above = (i - 1) >> 1; i > 0 && compare(item, items[above]) < 0; above = (i - 1) >> 1) {
      items[i] = items[above];
      i = above;
    }
    items[i] = item;
  }

  // The least, or undefined where there is none.
  pop() {
    const { items, compare } = this;
    const [least, item] = [items[0], items.pop()];
    const { length } = items;
    if (length === 0) {
      return least;
    }
    let i = 0;
    for (;;) {
      const left = 2 * i + 1;
      const right = left + 1;
      const child = right < length && compare(items[right], items[left]) < 0 ? right : left;
      if (child >= length || compare(item, items[child]) <= 0) {
        break;
      }
      items[i] = items[child];
      i = child;
    }
    items[i] = item;
    return least;
  }
}

// Neighbours among `parts` joined: of all that make a part together those of the lowest rank first,
// of equal ones the leftmost, and again, until none do. `union(a, b)` is { rank, part }, or null. The
// pairs wait in a heap, so n parts take n log n steps.
export function joined(parts, union) {
  const left_over = [...parts]; // what has been joined to its left neighbour is null
  const next = parts.map((_, i) => i + 1);
  const previous = parts.map((_, i) => i - 1);
  const waiting = new Heap((a, b) => a.rank - b.rank || a.left - b.left);
  const wait = (left) => {
    const right = next[left];
    const pair = [left_over[left], left_over[right]];
    const found = left >= 0 && right < parts.length ? union(...pair) : null;
    if (found) {
      waiting.push({ ...found, left, right, pair });
    }
  };
  parts.forEach((_, left) => wait(left));
  for (let first = waiting.pop(); first; first = waiting.pop()) {
    const { part, left, right, pair } = first;
    if (left_over[left] !== pair[0] || left_over[right] !== pair[1]) {
      continue; // one of them has been joined to another since
    }
    left_over[left] = part;
    left_over[right] = null;
    next[left] = next[right];
    if (next[left] < parts.length) {
      previous[next[left]] = left;
    }
    wait(previous[left]);
    wait(left);
  }
  return left_over.filter((part) => part !== null);
}
