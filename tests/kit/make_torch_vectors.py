"""Write what torch computes for the stored parity cases to ``vectors/torch.npz``.

    python tests/kit/make_torch_vectors.py

The tests compare with these numbers where torch is not installed, and where it is they check that
the file still holds what this script would write.
"""

import numpy as np
import torch_twin
from parity_cases import CASES, VECTORS, pack

if __name__ == "__main__":
    stored = [case for case in CASES if case.stored]
    np.savez_compressed(
        VECTORS, **{c.name: pack(c.torch(torch_twin, c.draw(), "float64")) for c in stored}
    )
