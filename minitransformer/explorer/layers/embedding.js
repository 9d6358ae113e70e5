import { row, zeros } from "../arrays.js";

// Embedding, √D · weight[ids] (section 3.4): ids a list of T integers, weight (V, D).
export function embedding(ids, weight) {
  const [size, d_model] = weight.shape;
  const scale = Math.sqrt(d_model);
  const x = zeros([ids.length, d_model]); // (T, D)
  ids.forEach((id, t) => {
    if (!(Number.isInteger(id) && 0 <= id && id < size)) {
      throw new RangeError(`${id} is no id of a vocabulary of ${size} pieces`);
    }
    row(x, t).set(row(weight, id).map((value) => value * scale));
  });
  return [x, [ids, weight, scale]];
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
