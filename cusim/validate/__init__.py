"""Judging the model: predictions against times that others published or that were recorded, and against rivals."""
