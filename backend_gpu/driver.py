"""The CUDA driver by ctypes: the few calls that CuPy does not make, each checked by name.

Nothing is loaded before :func:`driver` is called. Contexts, streams and memory are CuPy's: every handle here is a
plain integer that CuPy gave (``stream.ptr``, ``memory.ptr``).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from cusim.errors import CusimError

_PROGRAMMATIC_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
_NUM_REGS, _STATIC_SHARED, _LOCAL_BYTES = 4, 1, 3
_WAIT_GEQ = 0  # cyclic: (int)(*address - value) >= 0
_NOT_READY = 600


class DriverError(CusimError):
    """A call of the driver that failed: its name, the error's name and number."""

    def __init__(self, call: str, status: int, name: str) -> None:
        self.status = status
        super().__init__(f"the CUDA driver refused {call}: {name} ({status})")


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id, and a union of 64 bytes aligned to 8."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig: grid and block in three dimensions each, shared memory, stream and attributes."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "smem")),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint),
    )  # fmt: skip


@functools.cache
def driver() -> ctypes.CDLL:
    """The driver's library; OSError where there is none."""
    return ctypes.CDLL("libcuda.so.1")


def check(call: str, *arguments: object) -> None:
    """Calls the driver's *call*; DriverError, with the error's own name, unless it succeeds."""
    status = int(getattr(driver(), call)(*arguments))
    if status:
        raise DriverError(call, status, error_name(status))


def error_name(status: int) -> str:
    """What the driver calls an error number."""
    text = ctypes.c_char_p()
    if driver().cuGetErrorName(status, ctypes.byref(text)) or text.value is None:
        return "unknown error"
    return text.value.decode(errors="replace")


def load_module(cubin: bytes) -> int:
    """The handle of a module of machine code, loaded into the current context."""
    module = ctypes.c_void_p()
    check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(cubin))
    return int(module.value or 0)


def unload_module(module: int) -> None:
    """Gives a module back; none of its functions may run any more."""
    check("cuModuleUnload", ctypes.c_void_p(module))


def get_function(module: int, name: str) -> int:
    """The handle of a kernel of the module, by its unmangled name."""
    function = ctypes.c_void_p()
    check("cuModuleGetFunction", ctypes.byref(function), ctypes.c_void_p(module), name.encode())
    return int(function.value or 0)


def allow_shared(function: int, dynamic_bytes: int) -> None:
    """Lets a kernel take that much dynamic shared memory, with the largest carve-out of the SM."""
    for attribute, value in ((_MAX_DYNAMIC_SHARED, dynamic_bytes), (_CARVEOUT, 100)):
        check("cuFuncSetAttribute", ctypes.c_void_p(function), attribute, ctypes.c_int(value))


def registers_of(function: int) -> int:
    """Registers a thread of the kernel as it was compiled."""
    return _attribute(function, _NUM_REGS)


def static_shared(function: int) -> int:
    """Bytes of static shared memory of the kernel."""
    return _attribute(function, _STATIC_SHARED)


def local_bytes(function: int) -> int:
    """Bytes of local memory a thread: what was spilled."""
    return _attribute(function, _LOCAL_BYTES)


def blocks_per_sm(function: int, threads: int, dynamic_bytes: int) -> int:
    """How many blocks of the kernel an SM holds, by the driver's own count."""
    found = ctypes.c_int()
    check(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(found), ctypes.c_void_p(function),
        ctypes.c_int(threads), ctypes.c_size_t(dynamic_bytes),
    )  # fmt: skip
    return found.value


class Launch:
    """One kernel launch with everything prepared: :meth:`go` is a single call of the driver.

    *arguments* are arrays that hold each parameter by value; they are kept alive and may be rewritten in place between
    launches. With *early* the kernel may start before the one before it in its stream has ended (programmatic
    stream serialisation), as soon as all blocks of that one have triggered or left.
    """

    def __init__(
        self, function: int, grid: int, threads: int, dynamic_bytes: int, stream: int,
        arguments: Sequence[NDArray[Any]], *, early: bool = False,
    ) -> None:  # fmt: skip
        self._kept = tuple(arguments)
        self._attribute = LaunchAttribute(_PROGRAMMATIC_SERIALIZATION, 0)
        self._attribute.value[0] = 1
        self._config = LaunchConfig(grid, 1, 1, threads, 1, 1, dynamic_bytes, stream)
        if early:
            self._config.attributes = ctypes.pointer(self._attribute)
            self._config.count = 1
        self._pointers = (ctypes.c_void_p * len(self._kept))(*(each.ctypes.data for each in self._kept))
        self._call = driver().cuLaunchKernelEx
        self._arguments = (ctypes.byref(self._config), ctypes.c_void_p(function), self._pointers, None)

    def go(self) -> None:
        """Puts the kernel into its stream."""
        status = self._call(*self._arguments)
        if status:
            raise DriverError("cuLaunchKernelEx", int(status), error_name(int(status)))


def wait_value(stream: int, address: int, value: int) -> None:
    """Holds the stream until the 32-bit word at *address* has reached *value*, counted round past the largest."""
    check(
        "cuStreamWaitValue32_v2", ctypes.c_void_p(stream), ctypes.c_uint64(address),
        ctypes.c_uint32(value & 0xFFFFFFFF), ctypes.c_uint(_WAIT_GEQ),
    )  # fmt: skip


def idle(stream: int) -> bool:
    """True once everything in the stream is done; DriverError for a kernel that failed."""
    status = int(driver().cuStreamQuery(ctypes.c_void_p(stream)))
    if status not in (0, _NOT_READY):
        raise DriverError("cuStreamQuery", status, error_name(status))
    return status == 0


def _attribute(function: int, number: int) -> int:
    found = ctypes.c_int()
    check("cuFuncGetAttribute", ctypes.byref(found), number, ctypes.c_void_p(function))
    return found.value
