"""Bounds a store: what is due is deleted in slices, by one process at a time."""
