"""From single-kernel timings and micro-benchmarks to a machine file: what was read, fitted, and is unknown."""
