WRONG = """
longest_context
    (2 * num_layers -> (num_layers || a key and a value
    * bytes_per_number -> || in bytes
    2 * num_layers -> 2 || each layer
    * num_groups -> || each group
    memory // -> memory / || in part does not fit
    return memory // ( -> return -1 - -memory // ( || may fill the memory
base_for
    head_width / (head_width - 2) -> 1 || number K/2 − 1
    length / (2 * math.pi) -> length || a turn is 2π
    head_width / (head_width - 2) -> 2 * head_width / (head_width - 2) || not −i/K
    head_width / (head_width - 2) -> (head_width - 2) / head_width || solved for the base
soft_cap
    cap * np.tanh(x / cap) -> np.tanh(x / cap) || y is x where x is small
    np.tanh(x / cap) -> np.tanh(x) || divided by c first
    cap * np.tanh(x / cap) -> np.clip(x, -cap, cap) || np.clip breaks
    cap * np.tanh(x / cap) -> x / (1 + abs(x) / cap) || y = c tanh(x / c)
    return dy * (1 - (y / cap) ** 2) -> return dy * (1 - (y / cap) ** 2) / cap || cancel
    return dy * (1 - (y / cap) ** 2) -> return dy * (1 - (y / cap) ** 2) * cap || cancel
    (y / cap) ** 2 -> y**2 || with tanh = y / c
    np.tanh(x / cap) -> (np.exp(2 * x / cap) - 1) / (np.exp(2 * x / cap) + 1)
        || y of 1e5, 0 and −1e5 is nan
    return y, (y, cap) -> return y, (np.exp(2 * x / cap), cap)
        && return dy * (1 - (y / cap) ** 2) -> return 4 * dy * y / (y + 1) ** 2 || dx there
merged_attention
    (total_1 * y_1 + total_2 * y_2) / np.where(total == 0, 1, total) -> (y_1 + y_2) / 2
        || do not count alike
    / np.where(total == 0, 1, total) -> || divide by the sum
    np.where(total == 0, 1, total) -> total || −∞ − (−∞) is NaN
    peak = np.where(peak == -np.inf, 0, peak) -> pass || −∞ − (−∞) is NaN
    peak + np.log(total) -> log_total_1 + log_total_2 || not their logarithms
    peak + np.log(total) -> np.maximum(log_total_1, log_total_2) || that is the larger one
    peak + np.log(total) -> np.log(total) || L = ln(exp(L₁) + exp(L₂))
    peak + np.log(total) -> peak + np.log(np.maximum(total, 1e-300)) || whether it is −∞
    peak + np.log(total) -> peak + np.log(total), 0 || must return y and log_total
"""
RIGHT = """
soft_cap
    return dy * (1 - (y / cap) ** 2) -> return dy * (cap - y) * (cap + y) / cap**2
merged_attention
    peak + np.log(total) -> np.logaddexp(log_total_1, log_total_2)
"""
