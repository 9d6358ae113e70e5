// Arrays: a shape and its numbers, row by row. They are float64, which JavaScript computes in.
//
// One sentence is looked at a time, so no array has the axis B of the Python. S and T are the
// lengths of source and target, D is d_model, H heads, K head width, F feed-forward width,
// V vocabulary. As in the Python no function writes to what it is given.

export function array(shape, data) {
  const size = shape.reduce((product, n) => product * n, 1);
  if (data.length !== size) {
    throw new RangeError(`an array of shape (${shape}) has ${size} numbers, not ${data.length}`);
  }
  return { shape, data };
}

export function zeros(shape) {
  return array(shape, new Float64Array(shape.reduce((product, n) => product * n, 1)));
}

export function number_of_rows(x) {
  return x.shape.slice(0, -1).reduce((product, n) => product * n, 1);
}

// Row i of x, all axes but the last counted as one: a view, to be written to by its maker alone.
export function row(x, i) {
  const width = x.shape.at(-1);
  return x.data.subarray(i * width, (i + 1) * width);
}

export function add(a, b) {
  if (a.data.length !== b.data.length) {
    throw new RangeError(`arrays of shapes (${a.shape}) and (${b.shape}) cannot be added`);
  }
  return array(a.shape, a.data.map((value, i) => value + b.data[i]));
}

export function multiply(a, b) {
  return array(a.shape, a.data.map((value, i) => value * b.data[i]));
}

export function scaled(x, factor) {
  return array(x.shape, x.data.map((value) => value * factor));
}

// The sum of all rows: (..., D) gives (D,).
export function sum_of_rows(x) {
  const y = zeros([x.shape.at(-1)]);
  for (let i = 0; i < number_of_rows(x); i++) {
    row(x, i).forEach((value, j) => (y.data[j] += value));
  }
  return y;
}

// The Euclidean length of a list of numbers, such as x.data or a row.
export function length_of(numbers) {
  return Math.sqrt(numbers.reduce((sum, value) => sum + value * value, 0));
}

// The last two axes swapped: (..., M, N) gives (..., N, M).
export function transposed(x) {
  const [m, n] = x.shape.slice(-2);
  const y = zeros([...x.shape.slice(0, -2), n, m]);
  for (let start = 0; start < x.data.length; start += m * n) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        y.data[start + j * m + i] = x.data[start + i * n + j];
      }
    }
  }
  return y;
}

// (..., M, N) times (..., N, P) is (..., M, P). Four rows of b are added at once, so that a row of
// the result is read and written a quarter as often.
export function matmul(a, b) {
  const [m, n] = a.shape.slice(-2);
  const [rows, p] = b.shape.slice(-2);
  if (n !== rows) {
    throw new RangeError(`(${a.shape}) times (${b.shape}): ${n} columns do not meet ${rows} rows`);
  }
  const y = zeros([...a.shape.slice(0, -1), p]);
  const [left, right, out] = [a.data, b.data, y.data];
  for (let i = 0; i < number_of_rows(a); i++) {
    const to = i * p;
    let from = Math.floor(i / m) * n * p; // where row k of b begins
    let k = i * n;
    for (const end = k + n - (n % 4); k < end; k += 4, from += 4 * p) {
      const [a0, a1, a2, a3] = [left[k], left[k + 1], left[k + 2], left[k + 3]];
      const [b1, b2, b3] = [from + p, from + 2 * p, from + 3 * p];
      for (let j = 0; j < p; j++) {
        out[to + j] +=
          a0 * right[from + j] + a1 * right[b1 + j] + a2 * right[b2 + j] + a3 * right[b3 + j];
      }
    }
    for (const end = (i + 1) * n; k < end; k++, from += p) {
      for (let j = 0; j < p; j++) {
        out[to + j] += left[k] * right[from + j];
      }
    }
  }
  return y;
}
