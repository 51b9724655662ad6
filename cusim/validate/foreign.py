"""What a CSV that is not ours looks like, so that a refusal can name the tool that wrote it."""

from __future__ import annotations

#: Tool: words that its CSVs have in their first lines; all of a tuple must be there.
_MARKS = (
    ("a report of Nsight Compute (ncu --csv)", ("Kernel Name", "Section Name")),
    ("a report of Nsight Compute (ncu --csv --page raw)", ("Kernel Name", "Process ID")),
    ("a summary of Nsight Systems (nsys stats)", ("Time (%)", "Total Time (ns)")),
    ("a trace of Nsight Systems (nsys stats)", ("Start (ns)", "Duration (ns)")),
    ("a report of nvprof", ("==", "nvprof")),
    ("a report of nvprof (--print-gpu-trace)", ("Start", "Duration", "Grid X")),
    ("a comparison of cusim predict (--csv)", ("policy", "total_ns", "speedup_vs_stream")),
    ("a trace of cusim", ("cusim.trace/",)),
    ("results of triton.testing", ("Triton", ",")),
    ("the raw results of cuSync's benchmark, '&' between columns", ("&", "kernel1")),
    ("an ampersand-separated table, as cuSync's benchmark writes", ("&",)),
    ("a published table without its first line", ("policy", "total_us", "stdev_us")),
)
_LINES = 20


def what_it_looks_like(text: str) -> str | None:
    """The tool that most likely wrote *text*; None where nothing points to one."""
    top = "\n".join(text.splitlines()[:_LINES])
    return next((tool for tool, words in _MARKS if all(word in top for word in words)), None)
