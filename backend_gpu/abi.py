"""The kernels' one parameter struct as numpy dtypes: the mirror of ``kernels/params.cuh``, checked on both sides."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import numpy as np

#: Most dependences into a kernel, and most out of it.
SLOTS = 4

#: Arguments of a kernel: ``CusimParams``; with TMA then the tensor maps of A and B.
PARAMS = np.dtype(
    [
        ("a", "<u8"),
        ("b", "<u8"),
        ("c", "<u8"),
        ("partials", "<u8"),
        ("sem_in", "<u8", (SLOTS,)),
        ("sem_out", "<u8", (SLOTS,)),
        ("arrivals", "<u8"),
        ("epoch", "<u8"),
        ("tickets", "<u8"),
        ("started", "<u8"),
        ("fault", "<u8"),
        ("stamps", "<u8"),
        ("spin_budget_ns", "<u8"),
        ("delay_seed", "<u8"),
        ("m", "<i4"),
        ("n", "<i4"),
        ("k", "<i4"),
        ("lda", "<i4"),
        ("ldb", "<i4"),
        ("ldc", "<i4"),
        ("kernel_id", "<u4"),
        ("delay_max_ns", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
    ],
    align=True,
)

#: ``CusimFault``: one for the whole program, in device memory, all zeros before a run.
FAULT = np.dtype([(name, "<u4") for name in ("abort", "kind", "kernel", "block", "slot", "index", "value", "target")])

#: Stamps of one ticket; nanoseconds of the global timer except *where* (SM | block index << 32) and *waited*.
STAMPS = np.dtype(
    [(name, "<u8") for name in ("placed", "ready", "first_load", "end", "posted", "where", "waited", "reserved")]
)

#: ``CUtensorMap``: 128 bytes, to be passed by value at a 64-byte boundary.
TENSOR_MAP = np.dtype([("words", "<u8", (16,))])

if (PARAMS.itemsize, FAULT.itemsize, STAMPS.itemsize, TENSOR_MAP.itemsize) != (200, 32, 64, 128):
    raise AssertionError("abi.py and kernels/params.cuh differ")  # pragma: no cover


class KernelFlag(IntFlag):
    """Bits of ``flags``; R, T and A are cuSync's (T is the absence of TICKETED)."""

    REORDER = 1
    TICKETED = 2
    STORE_POST = 4
    PDL_TRIGGER = 8
    PDL_WAIT_END = 16
    PDL_WAIT_START = 32
    REVERSE = 64
    NO_WAIT = 128


class FaultKind(IntEnum):
    """What a spin waited for when it ran out of time."""

    NONE = 0
    SEMAPHORE = 1
    PIPELINE = 2
    STARTED = 3
