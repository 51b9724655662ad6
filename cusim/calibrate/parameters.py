"""The numbers of a machine that measurements fix, as data: by what, within which bounds, and what each means."""

from __future__ import annotations

from dataclasses import dataclass

from cusim.errors import Problems, did_you_mean


@dataclass(frozen=True, slots=True)
class Read:
    """A leaf that micro-benchmarks give by themselves: the mean of the medians of *quantities*.

    *quantities* are names in a micro-benchmark file; ``*`` stands for any text and ``{sms}`` for the number of SMs.
    Where only the sum of two leaves can be measured, *less* is the one that is taken off: as it was read, else as the
    machine has it, and then nobody knows how well the rest is known.
    """

    path: str
    quantities: str
    meaning: str
    less: str = ""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A leaf that the times of single kernels fix together with others, between *least* and *most*, in *unit*.

    *start* is its usual size: the scale of the fit, and where it begins if the machine's own value lies outside the
    bounds or has no effect (a limit that never binds). Only *usual* ones are fitted unless others are asked for.
    """

    path: str
    least: float
    start: float
    most: float
    unit: str
    meaning: str
    usual: bool = True


READ = (
    Read("rates.clock_hz", "sm_clock", "cycles of an SM that does no tensor work, over time"),
    Read("rates.hbm_bytes_per_s", "bandwidth_hbm", "bytes read plus written by a copy that L2 cannot hold"),
    Read("block.prologue_ps", "block_first_load", "block start to its first load, no ticket and no wait"),
    Read("block.ticket_ps", "block_ticket_*", "block start to its ticket, beyond that of blocks that take none"),
    Read("sync.post_ps", "block_post_row", "end of a block to its post by red.release"),
    Read("sync.post_store_ps", "block_post_tile", "end of a block to its post by st.release (flag A)"),
    Read("sync.visible_ps", "semaphore_red", "one way less the post", less="sync.post_ps"),
    Read("sync.visible_store_ps", "semaphore_store", "one way by a store less the post", less="sync.post_store_ps"),
    Read("sync.satisfied_ps", "block_first_wait_row", "ticket to first load with everything posted, beyond no wait"),
    Read("sync.same_address_ps", "post_spacing_{sms}", "time a post while every SM posts to one word"),
    Read("launch.gap_ps", "gap_stream_*", "last block's end to the next kernel's first block in a stream"),
    Read("launch.graph_gap_ps", "gap_graph_*", "the same between nodes of a linear CUDA graph"),
    Read("launch.early_wait_ps", "gap_early_wait_*", "under PDL, last block's end to past griddepcontrol.wait"),
    Read("launch.enqueue_ps", "host_enqueue", "host time of one launch while the stream is busy"),
    Read("launch.event_ps", "gap_event", "end of a kernel to the start of one on another stream behind its event"),
    Read("launch.wait_kernel_ps", "release_by_kernel", "producer's first block to consumer's, a wait-kernel between"),
    Read("launch.wait_value_ps", "release_by_value", "producer's first block to consumer's, a stream's wait between"),
    Read("dispatch.block_ps", "dispatch_period_*", "time a block of a large grid of empty blocks"),
    Read("dispatch.refill_ps", "slot_refill_*", "end of a block to the start of the next in its slot"),
)

#: Clocks of SMs that run their tensor cores, ``n`` of them at once, in quantities of this name. They give both leaves:
#: the clock of few, and the part lost with all busy, by the law that the engine has for shares between.
TENSOR_CLOCK = "clock_tensor_"
TENSOR_LEAVES = ("rates.tensor_clock_hz", "rates.clock_droop")

#: The order in which SMs get the blocks of a first wave: the row seen most often in this table.
SM_ORDER = "sm_order_1"
ORDER_LEAF = "dispatch.sm_order"

FITTED = (
    Fitted("rates.tensor_clock_hz", 1000, 1900, 3000, "MHz", "clock at which few SMs run their tensor cores"),
    Fitted("rates.clock_droop", 0, 0.1, 0.5, "1", "part of that clock lost with every SM busy"),
    Fitted("block.step_clocks", 0, 50, 400, "clock", "what a k step takes beyond its products"),
    Fitted("rates.l2_bytes_per_s", 0.5, 6, 30, "TB/s", "what all SMs together pull from L2"),
    Fitted("rates.l2_link_bytes_per_s", 0.5, 6, 30, "TB/s", "what crosses between the halves of L2"),
    Fitted("rates.hbm_bytes_per_s", 0.2, 4, 20, "TB/s", "what DRAM delivers"),
    Fitted("rates.contention_sharpness", 1, 4, 20, "1", "how softly the limits meet: the order of their norm"),
    Fitted("rates.sm_store_bytes_per_clock", 4, 50, 256, "B/clock", "what an SM stores of a result"),
    Fitted("block.load_ps", 0.1, 1, 5, "us", "round trip of a stage's loads"),
    Fitted("block.join_clocks", 1, 50, 500, "clock", "what a thread takes to join an element of two halves (SwiGLU)"),
    Fitted("block.prologue_ps", 0, 1.5, 10, "us", "block start to first load"),
    # Whole kernels show only its sum with the two above: it keeps what the machine had.
    Fitted("block.epilogue_ps", 0, 0.5, 10, "us", "fixed part behind the main loop", usual=False),
    # A share of the peak says nothing of tiles that were not seen; step_clocks does, and the two go together.
    Fitted("rates.tensor_efficiency", 0.2, 0.8, 1, "1", "share of the peak of a saturated main loop", usual=False),
)


def fitted_parameters(asked: tuple[str, ...], taken: set[str]) -> tuple[Fitted, ...]:
    """What is to be fitted: the leaves *asked* for, or the usual ones without what is *taken* (read already).

    Raises InputError for a leaf that no fit knows.
    """
    if not asked:
        return tuple(each for each in FITTED if each.usual and each.path not in taken)
    known = {each.path: each for each in FITTED}
    problems = Problems("the command line")
    for path in asked:
        if path not in known:
            problems.add("--fit", path, did_you_mean(path, known))
    problems.raise_if_any()
    return tuple(known[path] for path in dict.fromkeys(asked))
