"""The explorer: one page in which a trained Transformer runs, forward and backward, in a browser.

The page computes in JavaScript, in modules that read like the Python ones beside them: the same
names, a pair of functions a layer. ``transformer.js`` says in its first lines what it offers.
"""
