"""The short form of `python -m benchmarks.fuzz_arguments`."""

from __future__ import annotations

import pytest
from benchmarks.fuzz_arguments import fuzz


@pytest.mark.threat(67)
def test_no_call_of_a_megabyte_costs_the_host_much() -> None:
    # A busy machine takes more processor time for the same work: the long form holds the bound itself.
    assert fuzz(300, seed=7, limit_s=3.0) > 50
