"""Compute once what PyTorch makes of the cases, and keep it: run me where torch is installed.

    python tests/kit/make_torch_vectors.py

The tests compare with these numbers where torch is not installed, and where it is they check that
the file still holds what this script would write.
"""

import numpy as np
from parity_cases import PARITY, VECTORS, pack
from torch_twin import results

if __name__ == "__main__":
    np.savez_compressed(VECTORS, **{case.name: pack(results(case)) for case in PARITY})
