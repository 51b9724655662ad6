"""The six sections of a machine: plain numbers in internal units, which the engine reads in its inner loop.

Times are integer picoseconds, sizes bytes, rates per second or per SM clock. Where each number comes from
stands beside it in ``Machine.provenance``, under "section.leaf".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Placement = Literal["order", "most-room"]
PLACEMENTS: tuple[Placement, ...] = ("order", "most-room")


@dataclass(frozen=True, slots=True)
class Limits:
    """What an SM and the device can hold.

    ``smem_per_block_bytes`` is the opt-in maximum that a kernel may ask for, without ``smem_reserve_bytes``,
    which the driver adds to each block. Shared memory is given out in ``smem_unit_bytes``, registers to a
    warp in ``register_unit``, both by sub-partition (``partitions`` an SM). ``hardware_queues`` is what the
    driver uses unless told otherwise: streams beyond it share a queue.
    """

    sms: int
    warps_per_sm: int
    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    threads_per_block: int
    smem_per_sm_bytes: int
    smem_per_block_bytes: int
    smem_reserve_bytes: int
    smem_unit_bytes: int
    register_unit: int
    partitions: int
    resident_grids: int
    hardware_queues: int
    grid_max_blocks: int


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast things flow when nothing but the named resource limits them.

    ``clock_hz`` is the clock of an idle or loading SM, ``tensor_clock_hz`` the one at which few SMs run their tensor
    cores; with all of them busy the latter falls by ``clock_droop`` at once, by the square of the busy share.
    ``tensor_flops_per_clock_sm`` is the dense fp16 peak; ``tensor_efficiency`` the share of it that a
    saturated main loop reaches, prologue and epilogue not counted; ``lone_block_share`` the part of that
    saturated rate which one block of 8 or fewer warps reaches with an SM to itself.
    ``sustained_share`` is the part of all SMs' saturated rates that the power budget sustains on average: a run that
    would use more is clocked down. ``sm_l2_bytes_per_clock`` is what one SM can pull from L2 and
    ``sm_store_bytes_per_clock`` what it stores of a result; ``l2_bytes_per_s`` is what all of them together can pull,
    ``l2_link_bytes_per_s`` what crosses between the halves of L2, ``hbm_bytes_per_s`` what DRAM delivers (achieved, not
    nominal). Limits meet softly: the times that each alone would allow add up as a norm of order
    ``contention_sharpness``, so that a large one is a hard maximum.
    """

    clock_hz: int
    tensor_clock_hz: int
    clock_droop: float
    tensor_flops_per_clock_sm: int
    fp32_flops_per_clock_sm: int
    l2_capacity_bytes: int
    l2_bytes_per_s: int
    l2_link_bytes_per_s: int
    hbm_bytes_per_s: int
    sm_l2_bytes_per_clock: float
    sm_store_bytes_per_clock: float
    contention_sharpness: float
    tensor_efficiency: float
    lone_block_share: float
    sustained_share: float


@dataclass(frozen=True, slots=True)
class Block:
    """Fixed costs of one thread block.

    ``prologue_ps`` runs from the block's start to its first load, ``load_ps`` is one load round trip,
    ``epilogue_ps`` the fixed part after the main loop. ``ticket_ps`` is an atomic ticket with its barrier.
    ``step_clocks`` is what a k step takes beyond its products: waiting at the stage's barrier and letting go of it.
    ``join_clocks`` is what each thread of a block takes for an element of operand A that is joined from two halves
    (SwiGLU), all threads at once.
    """

    prologue_ps: int
    step_clocks: float
    join_clocks: float
    epilogue_ps: int
    ticket_ps: int
    load_ps: int


@dataclass(frozen=True, slots=True)
class Sync:
    """Semaphores between blocks; one way from the start of a post to its being seen is post + visible.

    ``post_ps`` (``post_store_ps`` with flag A) lies on the posting block's path: barrier, fence, then the
    atomic add or release store leaves. ``visible_ps`` (``visible_store_ps``) runs from there until a poller
    has seen it, the mean half of its poll period included. ``satisfied_ps`` is what an already satisfied
    wait costs the loading thread; of a block's waits after its first, polling ahead of the loads hides
    ``hidden_wait_share``. ``same_address_ps`` is the spacing of posts to one address.
    """

    post_ps: int
    post_store_ps: int
    visible_ps: int
    visible_store_ps: int
    poll_ps: int
    satisfied_ps: int
    hidden_wait_share: float
    same_address_ps: int


@dataclass(frozen=True, slots=True)
class Launch:
    """Host and front end.

    ``gap_ps``: end of a kernel to the first block of the next, one stream, queued. ``latency_ps``: end of
    the host call to the kernel's start on an idle device. ``enqueue_ps``: host time of one launch.
    ``event_ps``: event record to kernel start on another stream. ``wait_kernel_ps``, ``wait_value_ps``: what
    a wait-kernel or a stream wait-value puts between its release and the consumer's first block.
    ``event_host_ps``: host time of one event record or wait. ``graph_gap_ps`` is the gap between nodes of a linear CUDA
    graph. Under programmatic dependent launch (PDL) ``early_ps`` runs from the last trigger of the kernel ahead to the
    first block, and ``early_wait_ps`` from that kernel's end to the moment past ``griddepcontrol.wait``.
    """

    gap_ps: int
    graph_gap_ps: int
    early_ps: int
    early_wait_ps: int
    latency_ps: int
    enqueue_ps: int
    event_ps: int
    wait_kernel_ps: int
    wait_value_ps: int
    event_host_ps: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """How blocks reach SMs.

    ``block_ps`` is the spacing between placements, ``refill_ps`` the time from a block's end to the start of the next
    one in its slot. ``placement`` is "order" (one block on each SM with room in
    ``sm_order``, round after round) or "most-room" (the SM that can hold most further blocks, ties by ``sm_order``).
    ``sm_order`` is a permutation of range(sms).
    """

    block_ps: int
    refill_ps: int
    placement: Placement
    sm_order: tuple[int, ...]


SECTIONS: dict[str, type] = {
    "limits": Limits,
    "rates": Rates,
    "block": Block,
    "sync": Sync,
    "launch": Launch,
    "dispatch": Dispatch,
}
