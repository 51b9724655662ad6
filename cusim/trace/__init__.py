"""Traces: who ran where and when, what that says of the machine, and the files that hold it."""
