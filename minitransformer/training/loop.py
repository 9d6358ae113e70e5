"""The training loop, to be read: what the Trainer does, without all that is around it.

    for loss, nll in train(model, task, config): ...

The Trainer takes the same steps. Around them it cuts batches into shards for threads and processes,
logs, saves, stops when it is asked to and goes on, looks out for losses beyond hope, has patience,
and tries the mean of the last epochs' parameters.
"""

import math
from itertools import islice

from minitransformer.core.twins import accelerated
from minitransformer.optim.clipping import clip_scale, gradient_norm
from minitransformer.runs.checkpoint.arrays import load_model_arrays, model_arrays
from minitransformer.training.step import step_seed


def train(model, task, config):
    """Train to the end; ``model`` then has the parameters and buffers of the best epoch.

    Args:
        model: a Model on the CPU.
        task: a Task, which has the batches, and validates.
        config: a TrainingConfig.

    Yields:
        loss and NLL of each step, as ``model.loss`` has them.
    """
    optimizer = config.new_optimizer(model.flat)
    total_steps = config.epochs * math.ceil(task.num_batches(0) / config.accumulate)
    plateau, best = config.new_plateau(), None
    for epoch in range(1, config.epochs + 1):
        batches = iter(task.batches(epoch - 1))
        while group := list(islice(batches, config.accumulate)):
            step = optimizer.t + 1
            rate = config.learning_rate(step, total_steps, model.config, plateau.drops)
            yield take_step(model, optimizer, group, rate, config)
        with accelerated(config.accelerate):
            score = task.validate(model)[task.score.name]
        if best is None or task.score.better(score, best):
            best, best_epoch, chosen = score, epoch, model_arrays(model)
        plateau.look(epoch, best_epoch)
    load_model_arrays(model, chosen)


def take_step(model, optimizer, batches, learning_rate, config):
    """One update of the parameters, from the gradient of all ``batches``; returns loss and NLL."""
    rng = model.device.generator(step_seed(config.seed, optimizer.t + 1))
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
        optimizer.step(learning_rate, scale)
    return tuple(float(sum(shares)) for shares in zip(*losses, strict=True))
