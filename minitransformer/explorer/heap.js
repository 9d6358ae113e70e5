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
