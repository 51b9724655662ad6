"""Programs from what profilers recorded: kernels with their grids, resources and times; their needs are left open."""
