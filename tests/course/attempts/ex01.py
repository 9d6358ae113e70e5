WRONG = """
shapes_in_the_model
    (B, H, T, S) -> (B, H, S, T) || cross_weights:  || another order; target
    (B, H, S, D // H) -> (B, H, S, D) || cross_keys:  || come from the memory, and a head has D / H
    (B, H, S, S) -> (B, S, S) || encoder_weights:  || source positions ask
    (B, H, T, T) -> (B, H, T, S) || decoder_weights:  || target positions are asked
    (B, T, V) -> (B, T, D) || logits:  || for each of V words
    (B, S, F) -> (B, T, F) || inside:  || there are S of them
    (B, S, D) -> 'B S D' || memory:  || row of D numbers
    lambda *sizes: {'memory': (1, 2, 3)} || no inside, encoder_weights
count_parameters
    return V * D -> return 3 * V * D || count it once
    return V * D -> return 2 * V * D || count it once
    return V * D -> return 0 || is missing
    decoder_layer) + 2 -> decoder_layer) + 1 || two stacks ends with a LayerNorm
    norm = 2 * D -> norm = 0 || LayerNorms are missing
    3 * norm -> 2 * norm || three LayerNorms
    2 * attention + feed_forward + 3 -> attention + feed_forward + 2 || and its LayerNorm
    decoder_layer) + 2 -> decoder_layer) + 0 || end of each stack is missing
    norm = 2 * D -> norm = D || γ and β
    D * F + F + F * D + D -> D * F + F * D || have biases
    4 * D * D -> 4 * D * D + 4 * D || attention has no biases
    2 * attention -> attention || two attentions
    4 * D * D -> 3 * D * D || for its output too
    return V * D -> return 7 + V * D || one attention, one feed-forward
"""
