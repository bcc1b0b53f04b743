from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# Arrays are tuples (address, dtype, shape, strides or None).
_Array: TypeAlias = tuple[int, int, Sequence[int], Sequence[int] | None]

def op_catalogue() -> list[dict[str, Any]]: ...
def describe_array(array: Any) -> tuple[tuple[int, int, tuple[int, ...], tuple[int, ...]], int, int, Any]: ...

class Op:
    def __init__(self, name: str, attributes: dict[str, Any]) -> None: ...
    def output_types(self, inputs: Sequence[_Array]) -> list[tuple[int, tuple[int, ...]]]: ...
    def gradient_needs(self, inputs: Sequence[_Array], wanted: Sequence[bool]) -> tuple[list[bool], list[bool]]: ...

class PoolTensor:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def on_host(self) -> bool: ...
    @property
    def device(self) -> int: ...
    def share(self, reader: int | None = None) -> Any: ...

class Engine:
    @staticmethod
    def open(
        backend: str,
        device: int = 0,
        threads: int = 0,
        precision: str = "fp32",
        deterministic: bool = False,
        alternatives: bool = True,
        plugins: list[str] = ...,
        kernels: list[str] = ...,
    ) -> Engine: ...
    @property
    def name(self) -> str: ...
    @property
    def chain(self) -> list[str]: ...
    @property
    def device(self) -> str: ...
    @property
    def memory_domain(self) -> str: ...
    @property
    def on_host(self) -> bool: ...
    @property
    def alignment(self) -> int: ...
    @property
    def plans(self) -> int: ...
    def pool_statistics(self) -> dict[str, int]: ...
    def trim_pool(self) -> None: ...
    def explain(self, op: Op, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> list[str]: ...
    def allocate(self, dtype: int, shape: Sequence[int], stream: int = 0, device: int = 0) -> PoolTensor: ...
    def synchronize(self, stream: int = 0) -> None: ...

class Call:
    """An op, or its gradient, on arrays of settled types."""

    def __init__(self, engine: Engine, op: Op, inputs: Sequence[_Array], outputs: Sequence[_Array]) -> None: ...
    @staticmethod
    def gradient(
        engine: Engine,
        op: Op,
        cotangent: _Array,
        inputs: Sequence[_Array],
        outputs: Sequence[_Array],
        wanted: Sequence[bool],
        gradients: Sequence[_Array],
    ) -> Call: ...
    def scratch_bytes(self, capturing: bool = False, addresses: Sequence[int] | None = None) -> int:
        """Bytes of temporary memory that `run` needs."""

    def run(
        self,
        stream: int = 0,
        capturing: bool = False,
        scratch: int = 0,
        scratch_bytes: int = 0,
        addresses: Sequence[int] | None = None,
    ) -> None:
        """`addresses`: of inputs and outputs; of a gradient also of the gradients, then of the cotangent."""

class TensorCall:
    """A call on tensors of PyTorch."""

    def __init__(
        self,
        call: Call,
        device: int,
        places: Sequence[int],
        fresh: Sequence[tuple[tuple[int, ...], tuple[int, ...], Any]],
        results: Sequence[int],
        empty: Callable[..., Any],
        scratch: Callable[[int], Any],
        stream: Callable[[int], int] | None,
        capturing: Callable[[], bool] | None,
    ) -> None: ...
    def run(self, tensors: tuple[Any, ...], last: Any) -> tuple[Any, ...]:
        """Makes the fresh tensors and returns the results as a tuple."""

class ModuleCall:
    """A call of a module of PyTorch, to be recognised."""

    def __init__(
        self,
        guard: Callable[..., bool],
        count: int,
        attributes: Sequence[tuple[str, Any, bool]],
        parameters: Sequence[tuple[str, bool, int]],
        buffers: Sequence[tuple[str, bool, int]],
        watched: Sequence[tuple[dict[str, Any], str, Any]],
        conditions: Sequence[tuple[Callable[..., Any], tuple[Any, ...], Any]],
    ) -> None: ...
    def match(self, dictionary: dict[str, Any], input: Any) -> tuple[Any, ...] | None:
        """The input and the module's tensors, or None if anything is otherwise than it was."""
