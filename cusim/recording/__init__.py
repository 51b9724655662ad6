"""Recordings: what was measured, cell by cell, and the design that the cells come from."""
