// The sublayers of a language model as its configuration chooses them (models/sublayers.py), where
// they are not the paper's: each a chain of pairs of layers/, so its backward is the chain
// reversed.

import { alibi_attention, alibi_attention_backward } from "./layers/alibi.js";
import {
  merge_heads,
  scaled_dot_product_attention,
  scaled_dot_product_attention_backward,
  split_heads,
  without_heads,
} from "./layers/attention.js";
import { repeat_groups, repeat_groups_backward } from "./layers/grouped_query_attention.js";
import { linear, linear_backward } from "./layers/linear.js";
import { rotary, rotary_backward } from "./layers/rotary.js";

// Attention of a text x (T, D) to itself. `maps` are [weight, bias] of query, key, value and
// output, a bias null where there is none; `how` has num_heads, num_groups, table and pairs of
// rotary positions, and slopes of ALiBi, table or slopes null where they are not chosen.
export function self_attention(x, maps, how, mask, off, show) {
  const [query, key, value, caches] = queries_keys_values(x, maps, how, show);
  const [k, v] = [key, value].map((y) => repeat_groups(y, how.num_heads)); // (H, T, K)
  const [all_heads, attention_cache] = attention(query, k, v, how, mask, show);
  const heads = without_heads(all_heads, off); // (H, T, K)
  const [y, output_cache] = linear(merge_heads(heads), ...maps[3]); // (T, D)
  show?.("heads", heads);
  return [y, [how, off, caches, attention_cache, output_cache]];
}

// dx, and of each map the gradients of its weight and its bias.
export function self_attention_backward(dy, cache, show) {
  const [how, off, [q_cache, k_cache, v_cache, q_turned, k_turned], ...others] = cache;
  const [attention_cache, output_cache] = others;
  const [dmerged, ...doutput] = linear_backward(dy, output_cache); // (T, D)
  const dheads = split_heads(dmerged, how.num_heads); // (H, T, K)
  show?.("heads", dheads);
  const dall_heads = without_heads(dheads, off);
  const [dturned_query, ...drepeated] = attention_backward(dall_heads, how, attention_cache, show);
  const [dturned_key, dvalue] = drepeated.map((d) => repeat_groups_backward(d, how.num_groups));
  const dkey = turn_backward(dturned_key, k_turned); // (G, T, K)
  const dquery = turn_backward(dturned_query, q_turned); // (H, T, K)
  if (q_turned) {
    show?.("turned_query", dturned_query);
    show?.("turned_key", dturned_key);
  }
  ["query", "key", "value"].forEach((name, i) => show?.(name, [dquery, dkey, dvalue][i]));
  const [dx_value, ...dvalue_map] = linear_backward(merge_heads(dvalue), v_cache); // (T, D)
  const [dx_key, ...dkey_map] = linear_backward(merge_heads(dkey), k_cache); // (T, D)
  const [dx_query, ...dquery_map] = linear_backward(merge_heads(dquery), q_cache); // (T, D)
  return [[dx_query, dx_key, dx_value], [dquery_map, dkey_map, dvalue_map, doutput]];
}

// Queries (H, T, K), and keys and values (G, T, K), queries and keys turned by their positions.
export function queries_keys_values(x, maps, how, show) {
  const projected = maps.slice(0, 3).map(([weight, bias]) => linear(x, weight, bias));
  const [q, k, v] = projected.map(([y]) => y); // (T, D) and (T, G K)
  const query = split_heads(q, how.num_heads); // (H, T, K)
  const [key, value] = [k, v].map((y) => split_heads(y, how.num_groups)); // (G, T, K)
  ["query", "key", "value"].forEach((name, i) => show?.(name, [query, key, value][i]));
  const [turned_query, q_turned] = turn(query, how);
  const [turned_key, k_turned] = turn(key, how);
  if (how.table) {
    show?.("turned_query", turned_query);
    show?.("turned_key", turned_key);
  }
  const caches = [...projected.map(([, cache]) => cache), q_turned, k_turned];
  return [turned_query, turned_key, value, caches];
}

function turn(x, { table, pairs }) {
  return table ? rotary(x, table, pairs) : [x, null];
}

function turn_backward(dy, cache) {
  return cache ? rotary_backward(dy, cache) : dy;
}

// Of queries to keys and values (H, S, K), with ALiBi or without.
export function attention(query, key, value, { slopes }, mask, show) {
  return slopes
    ? alibi_attention(query, key, value, slopes, mask, show)
    : scaled_dot_product_attention(query, key, value, mask, show);
}

function attention_backward(dy, { slopes }, cache, show) {
  const backward = slopes ? alibi_attention_backward : scaled_dot_product_attention_backward;
  return backward(dy, cache, show);
}

// f(x W_1 + b_1) W_2 + b_2: `inner` and `outer` are [weight, bias], `activation` is [f,
// f_backward].
export function activated_feed_forward(x, inner, outer, activation, show) {
  const [f] = activation;
  const [opening, inner_cache] = linear(x, ...inner); // (T, F)
  const [h, activation_cache] = f(opening);
  const [y, outer_cache] = linear(h, ...outer); // (T, D)
  show?.("inner", opening);
  show?.(f.name, h);
  return [y, [activation, inner_cache, activation_cache, outer_cache]];
}

// dx, and of each map the gradients of its weight and its bias.
export function activated_feed_forward_backward(dy, cache, show) {
  const [[f, f_backward], inner_cache, activation_cache, outer_cache] = cache;
  const [dh, ...douter] = linear_backward(dy, outer_cache); // (T, F)
  const dopening = f_backward(dh, activation_cache);
  const [dx, ...dinner] = linear_backward(dopening, inner_cache); // (T, D)
  show?.(f.name, dh);
  show?.("inner", dopening);
  return [dx, [dinner, douter]];
}
