"""Twins on CuPy: one kernel (``kernels/``) where there would be many passes over memory.

Each file is one idea, beside the reference whose results it gives; importing it registers it, which
needs no CuPy. The functions take float32 or float64 and any shape, and but for Adam's update leave
alone what they are given. None waits for the GPU, except to check token ids that are only there, or
to count targets that are only there when ``num_tokens`` is not given.
"""
