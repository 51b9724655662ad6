"""Prints, for every recorded shape, our fastest plans beside cuBLAS twice and beside the time at the measured peak."""

from collections import defaultdict
from pathlib import Path

from cusim.recording.rows import Row, read_recording

RECORDINGS = Path(__file__).parent.parent / "traces" / "h200"
#: Multiply-adds of a row of M: both GEMMs of GPT-3's and of LLaMA's MLP (SwiGLU's second kernel reads K = 2816).
PER_ROW = {"gpt3-mlp": 2 * 6144 * 12288, "llama-mlp": 5632 * 8192 + 8192 * 2816}


def main() -> None:
    """Prints one Markdown row a shape; times in us, the least of both occasions."""
    rows = [row for name in ("occasion-1.csv", "occasion-2.csv") for row in read_recording(RECORDINGS / name)[0]]
    rows = [row for row in rows if row.total_ns and row.workload in PER_ROW]
    peak = max(2 * row.m * PER_ROW[row.workload] / (row.total_ns or 1) for row in rows)  # GFLOP/s, that is flop/ns
    shapes: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        shapes[row.workload, row.m].append(row)
    print(f"peak reached by any cell: {peak / 1e3:.0f} TFLOP/s")
    print("| workload, M | stream | semaphores | cuBLAS, stream / graph | at that peak |\n|---|---|---|---|---|")
    for (workload, m), found in sorted(shapes.items()):
        library = [_least(found, policy) for policy in ("cublas-stream", "cublas-graph")]
        ours = [_named(found, policies) for policies in (("stream",), ("row", "tile", "batched:2"))]
        floor = 2 * m * PER_ROW[workload] / peak / 1e3
        print(f"| {workload} {m} | {' | '.join(ours)} | {library[0]:.0f} / {library[1]:.0f} | {floor:.0f} |")


def _least(rows: list[Row], policy: str) -> float:
    return min((row.total_ns or 0) for row in rows if row.policy == policy) / 1e3


def _named(rows: list[Row], policies: tuple[str, ...]) -> str:
    """The fastest row of some policies: its time, tile, split and order."""
    best = min((row for row in rows if row.policy in policies), key=lambda row: row.total_ns or 0)
    split = "" if best.split_k == "1" else f" split {best.split_k}"
    launch = f" {best.launch}" if best.launch in ("graph", "pdl") else ""
    policy = "" if best.policy == "stream" else f"{best.policy}, "
    return f"{(best.total_ns or 0) / 1e3:.0f} ({policy}{best.tile.rpartition('x')[0]}{split}{launch}, {best.order})"


if __name__ == "__main__":
    main()
