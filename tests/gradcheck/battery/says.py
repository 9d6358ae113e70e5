"""What may be said of each kind of slip; a cause that matches none of its patterns is a wrong one.

Where several causes fit the numbers and all of them are printed, one must be this one.
"""

# Where an error lies, without a cause, is silence.
SILENT = r"^\d+ of (its \d+ entries|the slopes along \d+ directions) are (wrong|NaN or infinite)"

# Kinds of which it may also be said that they cannot be checked: what is wrong is not the numbers.
CANNOT_BE_CHECKED = {"state", "overwrites"}

TIMES = r"times too (large|small)"
SIZE = r"batch|length|number of|root|width|size|mean"
FORGOTTEN = r"(forgotten|missing|left out|passed over|not there)"

SAYS = {
    # What comes from above
    "dy forgotten": (rf"\bdy\b.*({FORGOTTEN}|not multiplied)", r"without dy\b"),
    "dy twice": (r"\bdy\b.*(twice|squared|once too often)", r"dy²"),
    "zero": (r"zero everywhere",),
    "gradient left out": (r"zero everywhere", r"None", r"return"),
    "gradient replaced": (r"replace", r"\+="),
    "zero in places": (r"zero where", r"zero in", r"zero at"),
    "some rows": (TIMES, r"only .*index|axis 0"),
    "some entries": (TIMES, r"entries", r"sign"),
    "shape wrong": (r"shape", r"transpos"),
    # Factors: a size may be named where it is one, elsewhere only among other causes
    "factor": (rf"{TIMES}(?!.*({SIZE}))", rf"{TIMES}.*(several|either|or |square|twice)"),
    "factor of a size": (TIMES,),
    "factor of a window": (rf"{TIMES}(?!.*({SIZE}))", r"window", r"several|either|or "),
    "mean in place of sum": (TIMES, r"mean .*sum"),
    "factor in a branch": (TIMES, r"negative|branch|condition|where x"),
    "factor x forgotten": (rf"\bx\b.*{FORGOTTEN}", r"(factor|divided by|multipl\w+ by).*\bx\b"),
    "factor y forgotten": (rf"\by\b.*{FORGOTTEN}", r"(factor|divided by|multipl\w+ by).*\by\b"),
    "factor p forgotten": (
        rf"\bp\b.*{FORGOTTEN}",
        r"(factor|divided by|multipl\w+ by).*\bp\b",
        TIMES,
    ),
    "counts of rows": (TIMES, r"factor|divided"),
    "sign": (r"\bsign\b", r"negat", r"minus"),
    "upside down": (r"multipl\w+.*divid", r"divid\w+.*multipl", r"upside down|reciprocal|inverse"),
    # Sums and axes
    "sum forgotten": (r"\bsum", r"shape"),
    "sum over too much": (r"\bsum", r"shape", r"same for|constant"),
    "sum of products": (r"\bsum",),
    "axis wrong": (r"\baxis\b|\baxes\b",),
    "one row only": (r"\bonly\b", r"\bsum"),
    "transposed": (r"transpos",),
    "exchanged": (r"exchanged|swapped",),
    "own factor": (r"factor|multipl", r"that of"),
    "halves exchanged": (r"exchanged|swapped|order|half|halves",),
    "order wrong": (r"order|permut|moved|shifted|another place|other places|exchanged|rearranged",),
    "index wrong": (r"index|indices",),
    "repeated index": (r"repeat|more than once|twice|recur|several times|occurs",),
    "product wrong": (r"product|@|matrix",),
    "cache of the other": (r"cache|other|exchanged|that of",),
    # Derivatives
    "derivative at y": (r"\bat y\b|\bof y\b|y (for|in place of) x|output",),
    "derivative at x": (r"\bat x\b|\bof x\b|x (for|in place of) y|input",),
    "derivative of another function": (r"derivative", r"that of", r"condition", r"\bx\b.*sign"),
    "derivative left out": (
        rf"derivative.*{FORGOTTEN}",
        r"handed on|passed on|dy itself|equals dy",
    ),
    "differentiated twice": (r"twice|second derivative|already|once too often|σ′|y \(1 − y\)",),
    "inner derivative missing": (
        rf"(inner|chain rule|derivative|factor).*{FORGOTTEN}",
        r"factor",
        TIMES,
    ),
    "power wrong": (r"square|power|1 − y\b|y²|factor",),
    "term missing": (
        rf"(term|factor|part|path|derivative|1 −).*{FORGOTTEN}",
        rf"{FORGOTTEN}.*term",
    ),
    "term too many": (r"term|constant|mean",),
    "term twice": (r"twice|term|\bdy\b",),
    "term wrong": (r"term|factor|multiple|sum|mean",),
    "sign of a term": (r"\bsign\b|plus|minus|added|subtracted",),
    "condition wrong": (r"condition|where x|branch|negative|positive|should be zero|zero where",),
    # Norms and softmax
    "mean term missing": (r"constant in each (row|column)", r"\bmean\b"),
    "sigma term missing": (r"multiple of (x̂|y)|x̂ mean|sigma|σ",),
    "statistics as constants": (r"both mean|constant|statistic|multiple of",),
    "sum term missing": (r"multiple of y|sum|Σ|term",),
    "diagonal only": (r"diagonal|Jacobian|sum",),
    "gain misplaced": (r"gain .*after|outside|misplaced",),
    "gain missing": (r"gain of 1|gain.*(missing|forgotten)|factor.*(missing|forgotten)",),
    "gain twice": (r"gain.*(twice|squared|again)|factor",),
    "sigma forgotten": (r"sigma|σ|divided|division|factor",),
    "input not normalised": (r"x̂|normalis|x in place of|factor",),
    "input before activation": (r"before|activation|input",),
    "label left out": (r"label|target|should be|one-hot|constant|exactly 1",),
    "smoothing forgotten": (r"smooth|constant|label|target",),
    # Masks, gates and paths
    "mask missing": (r"(?<!dropout )mask|padding|leaks|forbidden",),
    "mask inverted": (r"inverted|(?<!dropout )mask|padding",),
    "mask too strict": (r"(?<!dropout )mask|zero where",),
    "mask drawn again": (r"drawn again|another mask",),
    "path missing": (rf"path|second use|used twice|residual|\bdy\b.*{FORGOTTEN}",),
    "second use forgotten": (r"second use|used (twice|more than once)|\bpath",),
    "gate left out": (r"gate|half|halves|zero|factor|path|second use",),
    "gates exchanged": (r"exchanged|swapped|order",),
    "gate derivative": (r"gate|quarter|third|derivative|factor",),
    "sign in a gate": (r"\bsign\b|gate|quarter|third",),
    # Time
    "carry forgotten": (
        r"step to step|earlier steps?|carried|through the state|steps? after|only .*last",
    ),
    "carry wrong": (
        r"step to step|earlier steps?|carried|through the state|steps? after|only .*last",
    ),
    "matrix forgotten": (
        r"step to step|earlier steps?|carried|through the state|steps? after|only .*last",
    ),
    "factor between steps": (
        r"step to step|earlier steps?|carried|through the state|steps? after",
    ),
    "last step only": (r"last (step|position|index)|only .*(last|step)|zero where|earlier",),
    "first step only": (r"first (step|position)|overwritten|\+=|only one",),
    "first step left out": (r"first (step|position)|index 0|at 0\b|left out|stops",),
    "later steps forgotten": (r"later|steps? after|cumulative|sum|term",),
    "shifted": (r"shifted|one (step|place|position)|neighbour|off by one",),
    "time order": (r"order|revers|turned|backwards|forwards|shifted|transpos",),
    "stale cache": (r"cache|step|earlier",),
    # Windows and indices
    "tap order": (r"order|revers|turned|exchanged|flipped|transpos",),
    "tap wrong": (r"\btaps?\b|axis|step|zero|index",),
    "tap left out": (r"\btaps?\b|zero where|index|left out|step",),
    "overwritten": (r"\+=|overwritten|overlap",),
    "dilation ignored": (r"dilat|stride|shifted|tap|step|place",),
    "stride ignored": (r"stride|order|shifted|tap|step|place",),
    "channels mixed": (r"channel|axis|mean|mixed",),
    "index of the maximum": (
        r"maxim|largest|index|another entry|another place|moved|other places",
    ),
    # What is not in the numbers
    "state": (r"\bself\b|global|cache|state|call",),
    "overwrites": (r"writes|overwr|destroy|changes|cache|second (time|call)|again",),
    "float32": (r"float32|single precision",),
}
