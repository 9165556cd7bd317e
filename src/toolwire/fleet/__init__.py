"""Runs on many machines: what goes on with a run that another process recorded."""

from __future__ import annotations

from toolwire.fleet.going_on import Outcome, SessionFor, go_on, run_go_on

__all__ = ["Outcome", "SessionFor", "go_on", "run_go_on"]
