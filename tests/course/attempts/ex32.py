LOGARITHM = "math.log(1 - share) / math.log(momentum)"
ROOT = "math.sqrt(rate / (curvature * (2 - reach)))"
MU = "((large - small) / (large + small))"
ETA = "4 / (small + large) ** 2"

WRONG = r"""
steps_until
    math.ceil($LOGARITHM) -> math.ceil($LOGARITHM) - 1 || the step with the gradient is counted
    math.ceil($LOGARITHM) -> $LOGARITHM || a whole number of steps
    math.ceil($LOGARITHM) -> math.floor($LOGARITHM) || the step with the gradient is counted
    math.log(1 - share) -> math.log(share) || what is left to go
    math.ceil($LOGARITHM) -> math.ceil($LOGARITHM) + 1 || one step more than needed
    $LOGARITHM -> math.log(share) / math.log(momentum) + 1 || not the velocity
    math.ceil($LOGARITHM) -> math.floor($LOGARITHM) + 1 || one step more than needed
    return 1 -> return 0 || the step with the gradient is counted
    $LOGARITHM -> 1 / (1 - momentum) || of 1 / (1 − μ) in all
    return math.ceil($LOGARITHM) -> return min(1000, math.ceil($LOGARITHM)) || 0.9999) is 1000
wandering
    return noise * $ROOT -> return noise**2 * $ROOT**2 || the root of the variance
    (curvature * (2 - reach)) -> (curvature * 2) || for small rates alone
    rate / (curvature * (2 - reach)) -> 1 / (rate * curvature * (2 - reach)) || η s ξ
    return noise * $ROOT -> return rate * noise || what one step adds
    return noise * $ROOT -> return noise / curvature || deviations do not
    return noise * $ROOT -> return noise**0.5 * $ROOT || s² a variance
    return noise * $ROOT -> return $ROOT || of a variance V
    if reach >= 2: -> if reach > 1: || of a variance V
    return math.inf -> return 0.0 || without end
    if reach >= 2: -> if reach > 2: || wandering(2, 1, 1) raised ZeroDivisionError
best_for_a_ravine
    $MU ** 2 -> $MU || that is √μ
    $MU ** 2 -> (largest - least) / (largest + least) || the factor of plain descent
    $MU ** 2 -> ((largest - least) / (largest + least)) ** 2 || √κ, not κ
    $MU ** 2 -> ((large + small) / (large - small)) ** 2 || not the other way round
    $ETA -> 2 / (least + largest) || best without momentum
    $ETA -> 2 / (small + large) || η has a square
    $ETA -> 4 / (small + large) ** 2 * least / largest || not η a₂
    $ETA -> 4 / (small + large) ** 2 * largest / least || not η a₁
    $ETA -> 2 * (1 + $MU ** 2) / largest || begins to diverge
    return $ETA, $MU ** 2 -> return $MU ** 2, $ETA || μ of best_for_a_ravine
    return $ETA, $MU ** 2 -> return 1.0, 0.5 || multiplied by 0.691226 in a step, and no less
    return $ETA, $MU ** 2 -> return 1.0, $MU ** 2 || lie at the two ends of where
    return $ETA, $MU ** 2 -> return $ETA || must return (η, μ)
"""
