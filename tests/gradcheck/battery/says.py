"""What may be said of each kind of slip; a cause that matches none of its patterns is a wrong one.

Where several causes fit the numbers and all of them are printed, one must be this one. A factor may
be called a size only where it is that size; elsewhere it may stand alone, or among other causes.
"""

MISSING = r"(missing|forgotten|left out|passed over|lacks|without)"
SIZE = r"batch|length|number of|\broot\b|√|width|size of|\bN\b"
TIMES = r"times too (large|small)"
BARE = rf"{TIMES}(?!.*({SIZE}))"
HEDGED = rf"{TIMES}.*(square|twice|second use|constant|window|other causes?|several causes)"

# Facts without a cause are silence; what is wrong whatever the slip comes first.
# The root of a perfect square is no size that anybody would divide by.
NEVER = r"√(4|9|16|25)\b|None$"
SILENT = (
    r"^\d+ of (its \d+ entries|the slopes along \d+ directions) are (wrong|NaN or infinite)",
    rf"^it is [\d.e+-]+ {TIMES}$",
    r"^it is zero everywhere(, but for rounding)?$",
    r"^its shape is \(.*\) and should be \([^:]*\)$",
)

# A place that a trial has shown, and what is there: where to look, but not yet what was done.
PLACES = (
    r"^it is right where .*: the mistake lies in what is computed with it$",
    r"^it is right wherever both are not zero, but zero where it should not be\b(?!.*step)",
    r"^each (feature|row|entry of axis \d|head|channel) is off by a factor of its own$",
)
# What stands there and what should, as formulas that give every entry: true whatever the slip is.
FORMULAS = (
    r"^(where .* )?it is (the sum of )?dy times .*; it should be (that of )?dy times .*",
    r"^(where .* )?the term .*, times dy, is missing or has a wrong factor or sign",
    r"^it is dy times .*, which is not the derivative$",
)

# What was done at an operation of forward: a forward that does so has these gradients.
WAY = r"(the path|what is carried from step to step) through .*"
GONE = rf"^{WAY} is missing"
SCALED = rf"^{WAY} (is .* times too|counts|has the wrong sign)"
FACTOR = rf"^on {WAY} (the factor|the division by|the product with) .* (is forgotten|comes twice)"
INSTEAD = rf"^on {WAY} stands .* in place of "
NO_SLOPE = r"^the derivative of .* is left out$"
OTHER_SLOPE = r"^the derivative of .* is taken to be "
ELSEWHERE = r"^the derivative of .* is taken at "
LACKS = r"^the derivative of .* lacks the (logarithm|exponent)"
CONSTANTS = r"are taken for constants: the paths through them are missing$"
SOME_TIMES = (
    r"(at|only) the (first|last).* (of \d+ times|is there)|step by step, the (first|last) step"
)

STEPS = r"step to step|(earlier|later) steps?|steps? (before|after)|carried|recurren|state"
MOVED = r"\border\b|permut|moved|shifted|another place|other places|exchanged|rearranged"
TURNED = r"revers|turned round|flipped|other way round|backwards|forwards"


def forgotten(name):
    """What may be said where the factor of that name is forgotten."""
    return (
        rf"\b{name}`? (is |was )?{MISSING}",
        rf"(divided by|multiplied by|factor|factor of) {name}\b",
    )


SAYS = {
    # What comes from above
    "dy forgotten": (rf"\bdy\b(?! itself).*{MISSING}", r"(without|not multiplied by) dy\b"),
    "dy twice": (r"\bdy\b.*(twice|squared|once too often)", r"dy²"),
    "zero": (r"zero everywhere",),
    "gradient left out": (r"zero everywhere", r"None", r"\breturn\b"),
    "zero in places": (r"zero (where|in|at)(?!.*mask)", r"axis"),
    "shape wrong": (r"shape", r"transpos"),
    # Factors
    "factor": (BARE, HEDGED, r"1.25 is n / \(n − 1\) for n = 5"),
    "factor of the batch": (BARE, rf"{TIMES}.*batch"),
    "factor of a size": (BARE, rf"{TIMES}.*(length|number of|(?<!head )width|size of|\bN\b|steps)"),
    "factor of axis 1 of y": (rf"{TIMES}.*axis 1 of y",),
    "factor of a root": (BARE, rf"{TIMES}.*(√|root)", rf"{TIMES}.*width"),
    "factor of a window": (BARE, HEDGED),
    "mean in place of sum": (BARE, rf"{TIMES}.*({SIZE})", r"\bmean\b.*\bsum"),
    "factor in a branch": (TIMES, r"negative|branch|condition|where x", SCALED),
    "factor in a part": (r"\bpart\b|some of|columns", TIMES),
    "factor x forgotten": forgotten("x"),
    "factor y forgotten": forgotten("y"),
    "factor p forgotten": (*forgotten("p"), r"each feature is off by a factor", BARE),
    "counts of rows": (r"each row is off by a factor", r"\bcount|divided"),
    "sign": (r"\bsign\b", r"negat", r"minus"),
    "upside down": (r"multiplied.*divi", r"divi.*multipl|divided by",
        r"upside down|reciprocal|inverse|the derivative is taken at y"),
    # Sums and axes
    "sum forgotten": (r"\bsum",),
    "sum over too much": (r"\bsum", r"same for|constant over"),
    "sum of products": (r"\bsum",),
    "axis wrong": (r"\b(axis|axes)\b", r"a dy that is transposed$"),
    "one row only": (r"\bonly (the|one)\b", r"\bsum"),
    "transposed": (r"transpos",),
    "exchanged": (r"exchanged|swapped",),
    "own factor": (r"factor|multipl", r"in place of", r"gradient of \w+, not that of this"),
    "halves exchanged": (r"its thirds .* in another order",
        r"exchanged|swapped|\border\b|half|halves"),
    "order wrong": (MOVED, r"a dy that is reversed along"),
    "index wrong": (r"index|indices",),
    "repeated index": (r"repeat|more than once|several times|occurs|only one is left, as if",),
    "product wrong": (r"product|@|matrix",),
    "cache of the other": (r"cache|other input|in place of", INSTEAD),
    # Derivatives
    "derivative at y": (r"\bat y\b|\bof y\b|y (for|in place of) x|output", OTHER_SLOPE, ELSEWHERE),
    "derivative at x": (r"\bat x\b|\bof x\b|x (for|in place of) y", OTHER_SLOPE),
    "derivative of another function": (r"derivative", r"\bmean\b", r"\bmask is missing",
        r"^through .* every entry gets its share", GONE, OTHER_SLOPE, r"the factor .* is missing"),
    "derivative left out": (rf"derivative.*{MISSING}", r"handed on|passed on|equals dy|dy itself,"),
    "differentiated twice": (r"differentiated|second derivative|once too often|σ′|1 − [yσ]",),
    "inner derivative missing": (rf"(inner|chain).*{MISSING}", r"factor of its own", BARE,
        r"scale such as beta is misplaced, forgotten",
        r"not the derivative: (a term or )?a factor is missing", FACTOR, NO_SLOPE, LACKS),
    "power wrong": (r"square|power|1 − y\b|y²", OTHER_SLOPE, GONE,
        r"the factor \(y/x\) is missing"),
    "term missing": (r"a 1 is left out of the derivative|the path past w is missing",
        rf"(\bterm\b|product rule|derivative|constant|1 −|α).*{MISSING}", GONE, INSTEAD,
        OTHER_SLOPE),
    "term too many": (r"\bterm\b|constant in each row",),
    "term twice": (r"twice|\bdy\b",),
    "term wrong": (r"wrong factor|\bterms?\b", SCALED, FACTOR, rf"{ELSEWHERE}`x`$"),
    "sign of a term": (r"\bsign\b|plus|minus|added|subtracted|wrong factor",),
    "condition wrong": (
        r"condition|where \|?x|branch|negative|positive|mask is missing|the sign of dy is lost",
        r"^through .* every entry gets it all", NO_SLOPE, OTHER_SLOPE),
    # Norms and softmax
    "mean term missing": (rf"constant in each (row|column).*{MISSING}", rf"\bmean\b.*{MISSING}",
        GONE),
    "sigma term missing": (rf"multiple of (x̂|x|y)\b.*{MISSING}", rf"(sigma|σ).*{MISSING}", GONE),
    "statistics as constants": (r"the term with that sum is missing",
        rf"(both mean|multiple of).*{MISSING}", r"statistic|as constants?", GONE, CONSTANTS),
    "sum term missing": (rf"(multiple of|\bsum\b|Σ).*{MISSING}", CONSTANTS, OTHER_SLOPE),
    "diagonal only": (r"diagonal|Jacobian|\bsum\b|Σ",),
    "gain misplaced": (r"gain .*(after|outside|misplaced)",),
    "gain missing": (r"gain of 1", rf"gain.*({MISSING}|misplaced)",
        r"factor.*forgotten|the factor [ag] is missing"),
    "gain twice": (r"gain.*(twice|squared|again|once too often)", r"factor of its own", FACTOR,
        INSTEAD),
    "scale forgotten": (r"1/σ|sigma|divided|each (row|feature) is off by a factor",),
    "input not normalised": (r"x̂|normalis|wrong factor|factor of its own", FACTOR, INSTEAD),
    "input before activation": (r"before|activation", INSTEAD),
    "label left out": (r"label|target|one-hot",),
    "smoothing forgotten": (r"smooth|constant in each row|label|target",),
    # Masks, gates and paths
    "mask missing": (r"(?<!dropout )mask|padding|forbidden",),
    "mask inverted": (r"inverted|(?<!dropout )mask|padding",),
    "mask too strict": (r"(?<!dropout )mask",),
    "mask drawn again": (r"drawn again|another mask|mask another one than forward's",),
    "path missing": (rf"\bpath|second use|used twice|residual|\bdy itself.*{MISSING}", GONE),
    "second use forgotten": (r"second use|used (twice|more than once|several times)|\bpath", GONE,
        r"has to be transposed, or must not be"),
    "gate left out": (rf"\bgate.*{MISSING}|\bgates?\b|\bpath|second use|half|halves", GONE, FACTOR,
        INSTEAD),
    "gates exchanged": (r"exchanged|swapped|\border\b",),
    "gate derivative": (r"\bgates?\b|quarter|derivative", INSTEAD),
    "sign in a gate": (r"\bsign\b|\bgates?\b|quarter",),
    # Time
    "carry forgotten": (STEPS, r"only .*last step", r"the first index of axis 1 of dy only",
        r"only one is left.*or a path is missing", GONE, SOME_TIMES),
    "carry wrong": (STEPS,),
    "matrix forgotten": (STEPS, r"matrix|weight"),
    "factor between steps": (STEPS, r"a is forgotten", FACTOR),
    "last step only": (r"last (step|position|index)|only .*\blast\b|(earlier|other) steps",
        SOME_TIMES, GONE),
    "first step only": (r"(first|one) (step|position)|overwritten|\+=",),
    "first step left out": (
        r"first (step|position|index)|ends early|stops|step 0|that step left out", SOME_TIMES),
    "later steps forgotten": (r"later|steps? after|cumulative|\bsum\b",),
    "shifted": (r"shifted|one (step|place|position)|neighbour|dy itself.*missing|\btaps?\b",
        INSTEAD),
    "time order": (TURNED, r"\border\b|transpos|shifted"),
    "stale cache": (r"cache", STEPS),
    # Windows and indices
    "tap order": (TURNED, r"\border\b|exchanged|transpos"),
    "tap wrong": (r"\btaps?\b",),
    "tap left out": (r"\btaps?\b",
        r"zero where it should not be, all of them at 2 on axis 3, the last", GONE, SOME_TIMES),
    "overwritten": (r"\+=|overwritten|overlap",),
    "dilation ignored": (r"dilat|stride|shifted|\btaps?\b", MOVED),
    "stride ignored": (r"stride|\btaps?\b", MOVED),
    "channels mixed": (r"channel|\baxis\b|mixed",),
    "index of the maximum": (r"maxim|largest|another entry", MOVED),
}
