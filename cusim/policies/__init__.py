"""Policies, tile orders, flags and plans: everything that is chosen for a program, and the one CUDA printer."""
