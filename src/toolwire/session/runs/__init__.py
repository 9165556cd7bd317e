"""Runs that were suspended, or belong to a dead process: their export, decisions and continuation."""
