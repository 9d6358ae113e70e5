WRONG = """
most_attended
    weights.mean(axis=0) -> weights[0] || first head
    mean(axis=0) -> max(axis=0) || not the largest
    argmax(axis=-1) -> argmax(axis=0) || last axis
    mean(axis=0) -> mean(axis=1) || first axis
    [source_pieces[s] for s in columns] -> columns || strings, not positions
    argmax -> argmin || position 0
crossings
    for t in range(u) -> for t in range(u - 1, u) if u || need not be neighbours
    [t] > -> [t] >= || same position do not cross
    sum( -> 2 * sum( || each pair once
    [t] > -> [t] < || do not cross
    lambda alignment: 17 || looks behind where u looks
"""
