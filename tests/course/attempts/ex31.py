TOKENS = "1 + (side // size) ** 2"
MOST = "2 * d_model + d_ff"
DIVIDES = "side % size == 0 and "
MIDDLES = "np.clip((np.arange(after) + 0.5) * before / after - 0.5, 0, before - 1)"
HATS = "np.maximum(0, 1 - abs(middles[:, None] - np.arange(before)))"
WRONG = r"""
finest_patches
    $TOKENS -> (side // size) ** 2 || the class token is compared
    <= -> < || exactly as much
    $MOST -> 1.5 * d_model + d_ff || attention has four projections: queries
    $MOST -> 2 * ($MOST) || two products with n twice
    $MOST -> d_model / 2 + d_ff || four projections
    $MOST -> 2 * d_model + d_ff / 2 || two maps
    $MOST -> 2 * d_model || a part of all else
    $TOKENS -> 1 + side // size || side by side and one below the other
    $DIVIDES -> || a multiple of P
    return size -> return side // size || the number of patches in a row
    return size -> return (side // size) ** 2 || the number of patches; P
    return size -> return size + 1 || P divides the side
masked_patches
    token, x -> x, token || hidden is True where
    np.where(hidden[..., None], token, x) -> x + hidden[..., None] * token || is not added to it
    np.where(hidden[..., None], token, x) -> np.where(hidden[..., None], 0.0, x) || not 0
    np.where(hidden[..., None], token, x) -> x || y is the token where
    np.where(hidden[..., None], 0.0, dy) -> dy || has no effect on y
    np.where(hidden[..., None], 0.0, dy) -> np.where(hidden[..., None], dy, 0.0)
        || dx is dy where a patch is not hidden
    dy[hidden].sum(axis=0) -> dy.sum(axis=(0, 1)) || and nowhere else
    dy[hidden].sum(axis=0) -> dy[~hidden].sum(axis=0) || not where it is seen
    dy[hidden].sum(axis=0) -> dy[hidden].mean(axis=0) || a sum, not a mean
    dy[hidden].sum(axis=0) -> dy[hidden].sum(axis=0) / len(dy) || over the pictures
    dy[hidden].sum(axis=0) -> dy[0, hidden[0]].sum(axis=0) || of all pictures
    dy[hidden].sum(axis=0) -> dy[hidden].sum(axis=0) * 2 || dtoken
weights_for_mirrored
    in_patch[:, ::-1] -> in_patch || the weight has to change
    in_patch[:, ::-1] -> in_patch[::-1] || not top and bottom
    in_patch[:, ::-1].reshape(weight.shape) -> weight[::-1] || and so do channels
    in_patch[:, ::-1] -> in_patch[::-1, ::-1] || columns alone are turned round, and rows stay
    in_patch[:, ::-1] -> in_patch[:, ::-1, ::-1] || stay in their order
    in_patch[:, ::-1] -> weight.reshape(-1, size, size, d_model)[:, :, ::-1] || come last
    in_patch[:, ::-1] -> in_patch.swapaxes(0, 1) || rows and columns of a patch exchanged
    in_patch[:, ::-1] -> 2 * in_patch[:, ::-1] || a mirror changes neither
    in_patch[:, ::-1] -> in_patch[:, [-1, *range(1, size - 1), 0]] || weight for patches of 4 × 4
    reshape(size, size, -1, d_model) -> reshape(size, size, 2, d_model) || ValueError
    reshape(-1, columns, d_model) -> reshape(2, -1, d_model) || table for patches of 4 × 4
    on_grid[:, ::-1] -> on_grid || their positions have to change
    np.concatenate([table[:1], turned]) -> table[::-1] || the class token is no place
    on_grid[:, ::-1] -> on_grid[::-1, ::-1] || the rows stay
    on_grid[:, ::-1] -> on_grid[::-1] || not top and bottom
    reshape(-1, columns, d_model) -> reshape(columns, -1, d_model) || not rows
    np.concatenate([table[:1], turned]) -> turned || has the shape (8, 4)
    np.concatenate([table[:1], turned]) -> np.concatenate([turned, table[:1]])
        || the class token's position stays
larger_positions
    $MIDDLES -> np.linspace(0, before - 1, after) || do not coincide
    $MIDDLES -> np.clip(np.arange(after) * before / after, 0, before - 1) || not at its upper edge
    / after - 0.5, -> / after, || the last − ½
    $MIDDLES -> (np.arange(after) + 0.5) * before / after - 0.5 || must sum to 1
    $HATS -> np.eye(before)[np.floor(middles + 0.5).astype(int)] || the nearest old position
    *old, -1) -> *old, -1)[old[0]] || larger_positions(table, (2, 3), (2, 3)) raised IndexError
    $MIDDLES -> (np.arange(after) + 0.5) * before / after - 0.5
        \n        low = np.clip(np.floor(middles), 0, before - 2).astype(int)
        \n        share = middles[:, None] - low[:, None]
        && $HATS -> (1 - share) * np.eye(before)[low] + share * np.eye(before)[low + 1]
        || nothing is drawn on
    table[1:].reshape(*old, -1) -> table[1:].reshape(*old[::-1], -1).swapaxes(0, 1)
        || from left to right, row by row
    table[1:].reshape(*old, -1) -> table[:-1].reshape(*old, -1) || begins at row 1
    ->uvd -> ->vud || numbered from left to right, too
    np.concatenate([table[:1], grid.reshape(new[0] * new[1], -1)])
        -> np.concatenate([grid.reshape(new[0] * new[1], -1), table[:1]]) || comes first
    np.concatenate([table[:1], -> np.concatenate([0 * table[:1], || not 0
    $HATS -> np.maximum(0, 1 - 2 * abs(middles[:, None] - np.arange(before))) || a mean of at most
    np.concatenate([table[:1], grid.reshape(new[0] * new[1], -1)])
        -> grid.reshape(new[0] * new[1], -1) || has the shape (6, 4)
"""
