"""Single ops on arrays of NumPy, PyTorch, CuPy, JAX and whatever else speaks DLPack.

    import gpunn, numpy as np
    y = gpunn.ops.relu(gpunn.ops.conv2d(x, w, stride=2, pad=1))

A function for each op of the catalogue. Inputs are arrays of one library on one device, or numbers; results are of that
library too. Nothing is copied: contiguous arrays are used where they lie, on the library's current stream. An array
with gaps is made contiguous by its library first; one that changes in place, and ``out=``, must be contiguous. Labels
may be of any integer dtype. ``gpunn.torch`` has the same ops with autograd.
"""

from __future__ import annotations

from gpunn.ops import _functions
from gpunn.ops._arrays import Place, Tensor
from gpunn.ops._backend import Backend, PoolStatistics, pool_statistics, trim_pools, use
from gpunn.ops._call import CATALOGUE, explain, vjp
from gpunn.ops._functions import *  # noqa: F403

__all__ = [
    "CATALOGUE",
    "Backend",
    "Place",
    "PoolStatistics",
    "Tensor",
    "explain",
    "pool_statistics",
    "trim_pools",
    "use",
    "vjp",
]
__all__ += _functions.__all__
