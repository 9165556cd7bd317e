"""Schemas mutated from real ones, for a few seconds; `make fuzz` goes on for ten minutes."""

from __future__ import annotations

import pytest
from benchmarks.fuzz_schemas import fuzz


@pytest.mark.threat(68)
def test_no_mutated_schema_costs_much() -> None:
    # A busy machine takes more for the same work.
    assert fuzz(40, seed=12, limit_s=3.0) > 0
