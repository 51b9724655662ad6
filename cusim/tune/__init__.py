"""Choosing: the plans worth comparing with, found by prediction."""
