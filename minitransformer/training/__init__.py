"""How a model is trained: recipes, steps, epochs, the loop around them, progress.

The loop to read is ``loop``. The Trainer (``trainer``) takes the same steps (``step``), with all
that is around them: logging and giving up (``watch``), checkpoints and what is asked of them
(``state``), the ``choice`` of parameters at the end. What to do says a ``recipe``, with the
``config`` of its training; a ``job`` says where and with whom, and with which ``pretrained``
parameters; a ``session`` makes a Trainer of that. ``progress`` is what a user sees.
"""
