"""Which function a derivative is, and which it should be: a search among products of known ones.

The gradient of an elementwise function is dy f′(x), that of a loss over entries a constant times
some f′(x, target). Both are looked up among products of two of the functions that such derivatives
are made of; a fit in every entry is the proof.
"""

import math

import numpy as np

from minitransformer.gradcheck.diagnosis.experiments import (
    arrays,
    same,
)

UPSIDE_DOWN = ": it is upside down, multiplied where it has to be divided"
FEWEST = 6  # entries that a fit of one constant has to explain


def known_functions(evidence):
    """What derivatives are made of, by name, simplest first."""
    x, y = evidence.inputs[evidence.name], evidence.y
    found = {"1": np.ones_like(x)}
    arguments = {evidence.name: x}
    if y.shape == x.shape:
        arguments["y"] = y
    for name, other in arrays(evidence).items():
        if name != evidence.name and other.dtype.kind in "fiub" and 0 < other.ndim <= x.ndim:
            try:
                arguments[name] = np.broadcast_to(other, x.shape).astype(float)
            except ValueError:
                continue
    for name, a in arguments.items():
        found |= {name: a, f"(1 − {name})": 1 - a, f"(1 + {name})": 1 + a, f"{name}²": a * a}
        found |= {f"(1 − {name}²)": 1 - a * a, f"(1 + {name}²)": 1 + a * a}
        found |= {
            f"(1/{name})": 1 / a,
            f"1/(1 − {name})": 1 / (1 - a),
        }
    for name, a in arguments.items():
        found |= {f"({name} > 0)": (a > 0) * 1.0, f"({name} < 0)": (a < 0) * 1.0}
        found |= {f"sign({name})": np.sign(a)}
    for name, a in list(arguments.items())[1:]:
        if name == "y":
            continue
        found |= {f"({evidence.name} − {name})": x - a}
        found |= {f"(y − {name})": y - a} if y.shape == x.shape else {}
        found |= {f"sign({evidence.name} − {name})": np.sign(x - a)}
    n, s, density = evidence.name, 1 / (1 + np.exp(-x)), np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    cumulated = np.vectorize(lambda v: (1 + math.erf(v / math.sqrt(2))) / 2, otypes=[float])(x)
    found |= {f"σ({n})": s, f"(1 − σ({n}))": 1 - s, f"tanh({n})": np.tanh(x)}
    found |= {f"(1 − tanh²({n}))": 1 - np.tanh(x) ** 2, f"φ({n})": density, f"Φ({n})": cumulated}
    found |= {f"exp({n})": np.exp(x), f"exp(−{n})": np.exp(-x), f"sin({n})": np.sin(x)}
    found |= {f"cos({n})": np.cos(x), f"log|{n}|": np.log(np.abs(x)), f"√|{n}|": np.abs(x) ** 0.5}
    if y.shape == x.shape:
        found |= {"exp(y)": np.exp(y), f"(y/{n})": y / x, f"(1 − y/{n})": 1 - y / x}
        found |= {"(1 − exp(y))": 1 - np.exp(y)}
    for name, a in list(arguments.items())[1:]:
        found |= {f"(σ({n}) − {name})": s - a}
    if x.ndim:
        p = np.exp(x - x.max(axis=-1, keepdims=True))
        found["softmax"] = p = p / p.sum(axis=-1, keepdims=True)
        found |= {"(1 − softmax)": 1 - p, "log softmax": np.log(p)}
        for name, ids in arrays(evidence).items():
            if ids.dtype.kind not in "iu" or ids.shape != x.shape[:-1]:
                continue
            if ((ids >= 0) & (ids < x.shape[-1])).all():
                one_hot = np.eye(x.shape[-1])[ids]
                found |= {f"one-hot({name})": one_hot, f"(softmax − one-hot({name}))": p - one_hot}
        for name, a in list(arguments.items())[1:]:
            found[f"(softmax − {name})"] = p - a
    return {name: f for name, f in found.items() if np.isfinite(f).all() and f.any()}


def looked_up(target, dy, known, places, pairs=True):
    """The words for ``target`` = constant · dy · product of two known functions, or empty."""
    wanted = target[places]
    if not wanted.any() or wanted.size < FEWEST:
        return ""
    names = list(known)
    table = np.stack([known[name][places] for name in names])  # (K, N)
    factors = [(i, j) for i in range(len(names) if pairs else 1) for j in range(i, len(names))]
    factors.sort(key=lambda pair: (pair[0] > 0, pair[1]))  # single functions first
    left, right_ = (np.array(side) for side in zip(*factors, strict=True))
    products = table[left] * table[right_] * np.broadcast_to(dy, target.shape)[places]  # (P, N)
    power = (products * products).sum(axis=-1)
    with np.errstate(all="ignore"):
        c = products @ wanted / power
        error = np.abs(c[:, None] * products - wanted).max(axis=-1)
    close = np.flatnonzero(error <= 1e-4 * np.abs(wanted).max())
    close = [k for k in close if same(c[k] * products[k], wanted)]
    if not close:
        return ""
    best = min(close, key=lambda k: (not _simple(c[k]), k))
    i, j = factors[best]
    words = " ".join(dict.fromkeys(n for n in (names[i], names[j]) if n != "1"))
    if i == j and names[i] != "1":
        words = f"{names[i]} squared"
    return product_in_words(c[best], words)


def _simple(c):
    return any(abs(abs(c) * k - round(abs(c) * k)) < 1e-6 * k for k in (1, 2, 3)) and abs(c) > 0.3


def product_in_words(c, words):
    sign, size = ("−" if c < 0 else ""), abs(c)
    if abs(size - 1) < 1e-5:
        return f"{sign}{words or 1}"
    return f"{sign}{size:.5g}{' ' if words else ''}{words}"


def named(evidence, known, places, plainly=True):
    """What the derivative is and what it should be, what it lacks, or what it has too much.

    Args:
        plainly: whether to say formulas, too, that show no slip by themselves.
    """
    dy, analytic, numeric = evidence.dy, evidence.analytic, evidence.numeric
    is_now = looked_up(analytic, dy, known, places)
    should_be = looked_up(numeric, dy, known, places)
    if is_now and should_be:
        relation = _relation(evidence, is_now, should_be, known, places)
        if relation or plainly:
            return f"it is dy times {is_now}; it should be dy times {should_be}{relation}"
    if not plainly:
        return ""
    if missing := looked_up(numeric, analytic, known, places):
        return f"the factor {missing} is missing"
    if many := looked_up(analytic, numeric, known, places):
        return f"the factor {many} is too many"
    if term := looked_up(numeric - analytic, dy, known, places):
        return f"the term {term}, times dy, is missing or has a wrong factor or sign"
    return ""


def _relation(evidence, is_now, should_be, known, places):
    """How the derivative that is there comes from the right one, in words."""
    name, analytic, numeric, dy = evidence.name, evidence.analytic, evidence.numeric, evidence.dy
    if is_now == "1":
        return ": dy is handed on as it is, the derivative is left out"
    if should_be.replace("²", "") == is_now:
        return ": a square is missing"
    if is_now.replace("<", ">") == should_be:
        return ": the condition is the wrong way round"
    last = should_be.split()[-1]
    if is_now.endswith(f"(1 − {last})") and len(np.unique(known.get(last, dy))) == 2:
        return f": the mask {last} is inverted"
    if is_now.replace(name, "y") == should_be.replace(name, "y"):
        return f": {name} in place of y" if name in is_now else f": y in place of {name}"
    if is_now.replace("+", "−") == should_be.replace("+", "−"):
        return ": a sign is wrong"
    ones = np.ones_like(dy)
    product = (analytic * numeric)[places]
    square = (dy * dy * np.ones_like(numeric))[places]
    share = (product * square).sum() / (square * square).sum()
    if share and same(product, share * square):
        return UPSIDE_DOWN
    for numerator, denominator, verdict in (
        (numeric, analytic, "missing"),
        (analytic, numeric, "too many"),
    ):
        factor = looked_up(numerator, denominator, known, places, pairs=False)
        if factor and "/" not in factor:
            power = ", a power is wrong" if factor == name and name in is_now + should_be else ""
            return f": the factor {factor} is {verdict}{power}"
    if evidence.y.shape == numeric.shape and same(analytic[places], (dy * evidence.y)[places]):
        return ": y stands where its derivative should"
    simple = {
        k: v
        for k, v in known.items()
        if k in ("1", name, "y", f"{name}²", "y²") or k.startswith(("softmax", "one-hot"))
    }
    term = looked_up(numeric - analytic, dy * ones, simple, places, pairs=False)
    return f": the term {term} is missing" if term else ""
