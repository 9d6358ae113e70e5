"""Batches sent to the GPU ahead of their turn: while it works on one, the next is on its way.

A second stream copies, so that no copy stands in the queue between two kernels, and from pinned
memory, which CuPy takes for every copy, so that the host does not wait either. The ids of a batch
go up as one array. They are checked before, on the host, where that costs no waiting.
"""

from dataclasses import replace

import numpy as np

from minitransformer.layers.token_ids import check_token_ids


def staged(batches, device, sizes):
    """Yield each batch with its ids on ``device``, the next one uploaded before this one is used.

    The work on them has to be queued on the stream that is current now. On the CPU the batches are
    yielded as they are.

    Args:
        batches: any number of dataclasses, on the host.
        device: a Device.
        sizes: by the name of each field of ids, the size of the vocabulary that they are of.

    Raises:
        ValueError: an id is out of range.
    """
    if device.xp is np:
        yield from batches
        return
    main = device.xp.cuda.get_current_stream()
    side = device.xp.cuda.Stream(non_blocking=True)  # by default it would wait for the main one

    def upload(batch):
        parts = [getattr(batch, name) for name in sizes]
        for ids, size in zip(parts, sizes.values(), strict=True):
            check_token_ids(ids, size)
        # CuPy may hand out memory of a batch that is gone, and whose work is queued but not done.
        side.wait_event(main.record())
        with side:
            all_ids = device.asarray(np.concatenate([ids.reshape(-1) for ids in parts]))
        ends = np.cumsum([ids.size for ids in parts]).tolist()
        there = {
            name: all_ids[end - ids.size : end].reshape(ids.shape)
            for name, ids, end in zip(sizes, parts, ends, strict=True)
        }
        return replace(batch, **there), side.record()

    ahead = None
    for batch in batches:
        now, ahead = ahead, upload(batch)
        if now is not None:
            yield _ready(main, *now)
    if ahead is not None:
        yield _ready(main, *ahead)


def _ready(main, batch, uploaded):
    main.wait_event(uploaded)  # the GPU waits, not the host
    return batch
