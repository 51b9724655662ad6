"""The workloads: programs from the papers with the tiles, orders and flags that each machine is known to run best."""

from cusim.workloads.registry import build_workload, workload_names
from cusim.workloads.workload import Choice, Workload

__all__ = ["Choice", "Workload", "build_workload", "workload_names"]
