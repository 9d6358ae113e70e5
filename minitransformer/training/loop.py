"""The training loop, to be read: what the Trainer does, without all that is around it.

    for loss, nll in train(model, task, config): ...

The Trainer takes the same steps. Around them it cuts batches into shards for threads and processes,
logs, saves, stops when it is asked to and goes on, looks out for losses beyond hope, has patience,
and tries the mean of the last epochs' parameters.
"""

import math

from minitransformer.core.twins import accelerated
from minitransformer.optim.adam import Adam
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.training.trainer import step_seed


def train(model, task, config):
    """Train to the end; ``model`` then has the parameters of the best epoch.

    Args:
        model: a Model on the CPU.
        task: a Task, which has the batches, and validates.
        config: a TrainingConfig.

    Yields:
        loss and NLL of each step, as ``model.loss`` has them.
    """
    optimizer = Adam(model.flat)
    steps_per_epoch = math.ceil(len(task.batches(0)) / config.accumulate)
    total_steps = config.epochs * steps_per_epoch
    best = None
    for epoch in range(config.epochs):
        batches = task.batches(epoch)
        for start in range(0, len(batches), config.accumulate):
            group = batches[start : start + config.accumulate]
            yield take_step(model, optimizer, group, total_steps, config)
        with accelerated(config.accelerate):
            score = task.validate(model)[task.score.name]
        if best is None or task.score.better(score, best):
            best, chosen = score, model.flat.data.copy()
    model.flat.data[:] = chosen


def take_step(model, optimizer, batches, total_steps, config):
    """One update of the parameters, from the gradient of all ``batches``; returns loss and NLL."""
    step = optimizer.t + 1
    rng = model.device.generator(step_seed(config.seed, step))
    num_tokens = sum(batch.num_tokens for batch in batches)
    options = dict(smoothing=config.label_smoothing, kappa=config.consistency)
    losses = []
    model.flat.grad.fill(0)
    with accelerated(config.accelerate):
        for batch in batches:
            loss, cache = model.loss(batch, rng, **options, num_tokens=num_tokens)
            model.loss_backward(1.0, cache)
            losses.append(loss)
        norm = gradient_norm(model.flat.grad)
        scale = clip_scale(norm, config.clip_norm) if config.clip_norm else 1.0
        optimizer.step(config.learning_rate(step, total_steps, model.config.d_model), scale)
    return tuple(float(sum(shares)) for shares in zip(*losses, strict=True))
