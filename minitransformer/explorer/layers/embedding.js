import { row, zeros } from "../arrays.js";

// Embedding, √D · weight[ids] (section 3.4): ids a list of T integers, weight (V, D).
export function embedding(ids, weight, scale = Math.sqrt(weight.shape[1])) {
  const [size, d_model] = weight.shape;
  const x = zeros([ids.length, d_model]); // (T, D)
  ids.forEach((id, t) => {
    if (!(Number.isInteger(id) && 0 <= id && id < size)) {
      throw new RangeError(`${id} is no id of a vocabulary of ${size} pieces`);
    }
    row(x, t).set(row(weight, id).map((value) => value * scale));
  });
  return [x, [ids, weight, scale]];
}

// weight[ids], as in most models since; its backward is that of `embedding`.
export function unscaled_embedding(ids, weight) {
  return embedding(ids, weight, 1);
}

export function embedding_backward(dx, cache) {
  const [ids, weight, scale] = cache;
  const dweight = zeros(weight.shape); // (V, D)
  ids.forEach((id, t) => {
    const dweight_id = row(dweight, id);
    row(dx, t).forEach((value, j) => (dweight_id[j] += value * scale));
  });
  return dweight;
}
