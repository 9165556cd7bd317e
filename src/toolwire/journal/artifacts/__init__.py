"""Artifacts in a store: their versions, edits and export."""
