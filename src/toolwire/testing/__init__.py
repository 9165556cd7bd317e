"""Fakes of the ports and checks for whoever implements one. Nothing of toolwire's own imports it."""

from toolwire.testing.ledger import MemoryLedger as MemoryLedger

__all__ = ["MemoryLedger"]
