"""How the step with momentum is checked, which trains networks of pictures."""

import numpy as np

from minitransformer.course.exercises.parts import expect, part
from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.pair import unheard
from minitransformer.optim.sgd import momentum_update as package_update


@part(10, "32")
def check_momentum_update(momentum_update):
    rng = np.random.default_rng(30)
    data, velocity = rng.standard_normal((2, 6))
    for eta, mu, *options in (
        (0.1, 0.8),
        (0.2, 0.7, False, 0.3),
        (0.1, 0.8, False, 0.3, 0.5),
        (0.2, 0.7, True, 0.3, 0.5),
        (0.1, 0.8, True),
        (0.1, 0.8, False, 0.3, 0.0),  # as if clipping had left nothing of a gradient
        (0.1, 0.0),
        (0.0, 0.8),
    ):
        grad = rng.standard_normal(6)
        wanted = data.copy(), grad.copy(), velocity.copy()
        package_update(*wanted, eta, mu, *options)
        before, given_grad = (data.copy(), velocity.copy()), grad.copy()
        with unheard():
            momentum_update.writing(data, given_grad, velocity, eta, mu, *options)
        if not np.array_equal(given_grad, grad):
            raise CheckError("momentum_update wrote to grad, which is to be left as it is")
        if all(map(np.array_equal, before, (data, velocity))):
            raise CheckError(
                "momentum_update changed nothing: write to the arrays that are given, as "
                "velocity *= momentum and data -= ... do"
            )
        names = zip(("nesterov", "weight_decay", "scale"), options, strict=False)
        how = "".join(f", {name}={value}" for name, value in names)
        how = f" with learning_rate={eta}, momentum={mu}{how}"
        _compare_momentum(how, (data, velocity), wanted, before, grad, eta, mu, *options)


def _compare_momentum(
    how, given, wanted, before, grad, eta, mu, nesterov=False, decay=0.0, scale=1.0
):
    """Compare the velocity first, as θ is wrong where it is."""
    (theta, old), (wanted_data, _, u) = before, wanted
    g = scale * grad + decay * theta
    in_it = "λ θ is a part of the gradient, which goes into the velocity"
    mistakes = {
        "write to velocity itself, as in velocity *= momentum": old,
        in_it: mu * old + scale * grad,
        "the gradient is scale · grad": mu * old + grad + decay * theta,
        "scale is for grad alone, not for λ θ": mu * old + scale * (grad + decay * theta),
        "the decay is added to the gradient: g = scale · grad + λ θ": (
            mu * old + scale * grad - decay * theta
        ),
        "the new gradient counts whole, not 1 − μ of it": mu * old + (1 - mu) * g,
        "μ weighs the old velocity": old + g,
        "μ weighs the old velocity, not the new gradient": old + mu * g,
        "η stands outside of the velocity": mu * old + eta * g,
        "η stands outside of the velocity, and so does the minus": mu * old - eta * g,
    }
    expect(f"velocity{how}", given[1], u, "u ← μ u + g, with g = scale · grad + λ θ", mistakes)
    ahead = g + mu * u
    mistakes = {
        "write to data itself, as in data -= ...": theta,
        "a step goes against the gradient": theta + eta * (ahead if nesterov else u),
        "the velocity is what the step is made of": theta - eta * g,
        "the step is η times as long": theta - (ahead if nesterov else u),
    }
    if nesterov:
        mistakes |= {
            "with nesterov=True it is g + μ u, with the u that has just been made": theta - eta * u,
            "with nesterov=True it is g + μ u, not u + μ u": theta - eta * (1 + mu) * u,
            "with nesterov=True it is g + μ u, and no u without μ": theta - eta * (g + u),
            "with nesterov=True it is g + μ u: yours is μ u alone": theta - eta * mu * u,
            "the g in g + μ u has scale and λ θ in it, too": theta - eta * (grad + mu * u),
            "the g in g + μ u has λ θ in it, too": theta - eta * (scale * grad + mu * u),
            "the g in g + μ u has scale in it, too": theta - eta * (grad + decay * theta + mu * u),
        }
    else:
        mistakes |= {
            "one looks ahead only with nesterov=True": theta - eta * ahead,
            "the step is made of the u that has just been made": theta - eta * old,
        }
    step = "(g + μ u)" if nesterov else "u"
    expect(f"data{how}", given[0], wanted_data, f"θ ← θ − η {step}", mistakes)
