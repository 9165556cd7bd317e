"""How long a test waits for a condition."""

from __future__ import annotations

PATIENCE_S = 60
"""Seconds for a condition that comes at once on a machine at rest; only a test that fails waits for so long."""
