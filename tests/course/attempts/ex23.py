CHOICE = "np.take_along_axis(chosen, first, axis=1)"

WRONG = r"""
accuracy_by_form
    or of_all) -> or Counter([None])) || that training does not have, say
    for a, b in zip(said, test_labels, strict=True)
        -> for w, a, b in zip(test_words, said, test_labels, strict=True) if w in of_word
        || that training does not have count, too
    (of_word.get(word) or of_all) -> of_all || its own most frequent label
    zip(words, labels, -> zip(test_words, test_labels, || count the labels of training
whole_words
    $CHOICE & text -> chosen || all pieces are chosen
    $CHOICE -> (draw < share) || number at their first piece
    & text -> || where there is no text
    $CHOICE -> np.maximum.accumulate(chosen, axis=1) || ends where the next one begins
    draw < share -> draw >= share || below the share
    & text -> * text * 1.0 || a boolean array; it is float64
    $CHOICE & text -> chosen[0] || should have (4, 8)
    lambda begins, text, draw, share: None || is its `return` missing
score_by_blanks
    rows[row, place] = mask -> pass || must be hidden
    rows[row, place] -> rows[:, place] || one piece at a time
    np.arange(1, len(ids) - 1) -> np.arange(len(ids)) || BOS and EOS are not asked for
    [row, place, ids -> [row, place - 1, ids || read at the same place
    .sum() -> .mean() || not the mean
    return log -> return -log || below 0
    [row, place, ids -> [:, place, ids || at one place
    ids[place]] -> mask] || not for MASK
    log_probabilities(rows) -> np.concatenate([log_probabilities(r[None]) for r in rows])
        || was called 4 times
first_row_attention
    / np.sqrt(x.shape[-1]) -> || by √D
    np.sqrt(x.shape[-1]) -> x.shape[-1] || by √D
    x[:, 0] -> x[:, -1] || position 0
    dq @ w_query.T -> dq @ w_query.T\n    dx[:, 1:] = 0 || zero where it should not be
    dx[:, 0] += dq @ w_query.T -> pass || dx: the path through `x[:, 0]` || Only dx is wrong
"""
