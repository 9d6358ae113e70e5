OF_A_STEP = "(378 * width**2)"
LESS = "+ 90 * width**2"
MATRIX = "- 4 * width * num_classes"
AXES = "axis=(1, 2, 4)"
CENTRED = f"apart - apart.mean({AXES}, keepdims=True)"


def as_in_batch_norm(dy, cache):
    x_hat, sigma, gamma = cache
    apart = dy.reshape(x_hat.shape)
    gamma = gamma.reshape(x_hat.shape[3:])
    count = x_hat[0, ..., 0, :].size
    dbeta, dgamma = apart.sum(axis=(0, 1, 2)), (apart * x_hat).sum(axis=(0, 1, 2))
    dx = gamma / sigma * (apart - dbeta / count - x_hat * dgamma / count)
    return dx.reshape(dy.shape), dgamma.ravel(), dbeta.ravel()


WRONG = r"""
share_of_paths
    range(most + 1) -> range(most, most + 1) || exactly so many blocks
    range(most + 1) -> range(most) || exactly so many blocks are allowed
    / 2**num_blocks -> || not how many
    / 2**num_blocks -> / (2**num_blocks - 1) || there are 2ⁿ
    lambda num_blocks, most: (most + 1) / (num_blocks + 1) || than of others
    range(most + 1) -> range(1, most + 1) || the path around all blocks
    range(most + 1) -> range(most, num_blocks + 1) || the long ones
    2**num_blocks -> num_blocks**2 || paths go through k of n
    return sum -> return 1 - sum || those that are longer
    return sum -> return 100 * sum || is 1, not 100
deepest_within
    6 * n + 2 -> n || 6 n + 2 is asked for
    6 * n + 2 -> 6 * n || two layers more
    $LESS -> $LESS - 1 || exactly so many
    if n > 0 else 0 -> || where not even n = 1 fits
    $LESS -> || has a kernel of fewer channels in
    $LESS -> + 180 * width**2 || has as many channels in as out
    $OF_A_STEP -> (189 * width**2) || a block has two convolutions
    - 9 * channels * width -> || the first convolution has weights
    $MATRIX -> || the linear map has a matrix
    $MATRIX -> - width * num_classes || is given 4 width features
    9 * channels -> channels && $LESS -> + 10 * width**2 && $OF_A_STEP -> (42 * width**2)
        || a kernel has 9 places
    $LESS -> + 45 * width**2 && $OF_A_STEP -> (252 * width**2)
        && $MATRIX -> - 3 * width * num_classes || twice the channels of the second
    $LESS -> + 80 * width**2 || shortcuts A have no weights
    $MATRIX -> $MATRIX - num_classes || biases are left out
    $OF_A_STEP -> (126 * width**2) || not in all together
    $LESS -> + 72 * width**2 || count the network of n = 1
    9 * channels * width -> 9 * width * width || count the network of n = 1
    // $OF_A_STEP -> / $OF_A_STEP || count the network of n = 1
folded
    np.sqrt(variance + epsilon) -> (variance + epsilon) || not by the variance
    np.sqrt(variance + epsilon) -> (np.sqrt(variance) + epsilon) || under the root
    np.sqrt(variance + epsilon) -> np.sqrt(variance) || ε is missing
    np.sqrt(variance + epsilon) -> np.sqrt(variance + 1e-5) || use the epsilon that is given
    scale = gamma / -> scale = 1 / || γ is missing
    gamma / np.sqrt(variance + epsilon) -> gamma || the deviation is missing
    gamma / np -> gamma * np || do not multiply
    return weight * scale -> return (weight - mean) * scale || goes into the bias
    return weight * scale -> return weight * scale + beta || into the bias alone
    return weight * scale -> return weight || this is the weight as it was
    return weight * scale -> return -weight * scale || does to each channel of y
    beta - mean * scale -> -mean * scale || β is missing
    beta - mean * scale -> beta - mean || as the norm scales it
    beta - mean * scale -> beta - mean * gamma || divided by the deviation, too
    beta - mean * scale -> beta - mean / np.sqrt(variance + epsilon) || multiplied by γ, too
    beta - mean * scale -> beta + mean * scale || not added
    beta - mean * scale -> (beta - mean) * scale || does not scale it
    beta - mean * scale -> beta || the mean is missing
    beta - mean * scale -> beta - weight.mean(axis=(0, 1, 2)) * scale || the mean is that of y
    beta - mean * scale -> beta - 2 * mean * scale || where conv(x, weight) is 0
    weight * scale, beta - mean * scale -> weight * scale || must return weight' and bias'
    return weight * scale -> return (weight * scale).T || has the shape
group_norm
    $CENTRED -> apart - apart.mean(axis=(1, 2, 4), keepdims=True) * 0 || of its own, over all
    groups, -1) -> -1, groups) || not groups of G
    groups, -1) -> 1, x.shape[-1]) || as in layer norm
    groups, -1) -> x.shape[-1], 1) || each for itself
    gamma * x_hat.reshape(x.shape) + beta -> x_hat.reshape(x.shape) || stand behind the norm
    np.sqrt(variance + 1e-5) -> np.sqrt(variance) + 1e-5 || under the root
    np.sqrt(variance + 1e-5) -> (variance + 1e-5) || divide by σ, the root
    (centred * centred).mean($AXES, keepdims=True) -> (apart * apart).mean($AXES, keepdims=True)
        - apart.mean($AXES, keepdims=True) ** 2 || take the mean off before you square
    x_hat.reshape(x.shape) + beta -> x_hat.reshape(x.shape) || β is to be added
    gamma * x_hat.reshape(x.shape) -> x_hat.reshape(x.shape) || to be multiplied by γ
    gamma * x_hat -> np.repeat(gamma[:: len(gamma) // groups], len(gamma) // groups) * x_hat
        || has a γ of its own
    (centred * centred).mean($AXES, -> apart.var($AXES, ddof=1, || not by N − 1
    apart.mean($AXES -> apart.mean(axis=(0, 1, 2, 4)
        && centred).mean($AXES -> centred).mean(axis=(0, 1, 2, 4) || each picture has its own
    apart.mean($AXES -> apart.mean(axis=4 && centred).mean($AXES -> centred).mean(axis=4
        || over all places of the picture
    groups, -1) -> -1, groups) && apart.mean($AXES -> apart.mean(axis=(1, 2, 3)
        && centred).mean($AXES -> centred).mean(axis=(1, 2, 3) || 0 and 1, not 0 and 3
    - through_mean - through_sigma -> || dx has two terms more
    - through_mean -> || WRONG  dx
    - through_sigma -> || WRONG  dx
    ) / sigma -> ) || dx is divided by σ, too
    (dy * gamma) -> dy && ) / sigma -> ) / sigma * gamma.reshape(x_hat.shape[3:])
        || γ differs within a group
    dx_hat.mean(axis=(1, 2, 4) -> dx_hat.mean(axis=(0, 1, 2, 4)
        && (dx_hat * x_hat).mean(axis=(1, 2, 4) -> (dx_hat * x_hat).mean(axis=(0, 1, 2, 4)
        || not of the batch
    dx_hat.mean(axis=(1, 2, 4) -> dx_hat.mean(axis=4
        && (dx_hat * x_hat).mean(axis=(1, 2, 4) -> (dx_hat * x_hat).mean(axis=4
        || the means in dx are over all places
    dgamma, dbeta -> dbeta, dgamma || WRONG  dgamma || WRONG  dbeta
group_norm_backward
    as_in_batch_norm || are the means of a batch norm
"""
