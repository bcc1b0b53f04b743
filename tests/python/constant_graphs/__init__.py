"""Random graphs of constants for the test of folding.

Each node is run as soon as it is drawn: a node that neither ONNX Runtime nor ONNX's reference implementation takes is
left out. So all that is in a graph is valid, and has an expected value.
"""

from __future__ import annotations

import numpy as np
import onnx

from constant_graphs import computing, elementwise, movement
from constant_graphs.graph import EXOTIC, Array, Graph, InvalidError

__all__ = ["EXOTIC", "Array", "Graph", "random_graph"]

OPERATORS = [*elementwise.OPERATORS.values(), *movement.OPERATORS.values(), *computing.OPERATORS.values()]


def random_graph(seed: int, most: int = 8) -> Graph:
    """1 to `most` nodes, each with its values."""
    rng = np.random.default_rng(seed)
    g = Graph(rng, int(rng.integers(7, 26)))
    count = int(rng.integers(1, most + 1))
    for _ in range(4 * count):
        if len(g.nodes) >= count:
            break
        values, nodes = dict(g.values), list(g.nodes)
        initializers = list(g.initializers)
        try:
            g.choice(OPERATORS)(g)
        except (InvalidError, onnx.defs.SchemaError):
            g.values, g.nodes, g.initializers = values, nodes, initializers
    return g
