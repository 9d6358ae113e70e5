import { array, row, zeros } from "../arrays.js";

// Keys or values (G, S, K) as (H, S, K): each group for the H/G heads in a row that share it.
export function repeat_groups(x, num_heads) {
  const [num_groups, length, head_width] = x.shape;
  const y = zeros([num_heads, length, head_width]); // (H, S, K)
  const of_group = array([num_groups, length * head_width], x.data);
  const of_head = array([num_heads, length * head_width], y.data);
  for (let h = 0; h < num_heads; h++) {
    row(of_head, h).set(row(of_group, Math.floor((h * num_groups) / num_heads)));
  }
  return y;
}

// The sums (G, S, K) over the heads of a group.
export function repeat_groups_backward(dy, num_groups) {
  const [num_heads, length, head_width] = dy.shape;
  const dx = zeros([num_groups, length, head_width]); // (G, S, K)
  const of_group = array([num_groups, length * head_width], dx.data);
  const of_head = array([num_heads, length * head_width], dy.data);
  for (let h = 0; h < num_heads; h++) {
    const sum = row(of_group, Math.floor((h * num_groups) / num_heads));
    row(of_head, h).forEach((value, i) => (sum[i] += value));
  }
  return dx;
}
