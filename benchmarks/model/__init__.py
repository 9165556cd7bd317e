"""Figures of one local model: the requests that it solves in each calling format, through `Session`."""
