"""No result of a tool makes a provider refuse the conversation; `make fuzz` tries ten thousand of each API."""

from __future__ import annotations

import pytest

from tests.protocols.outgoing_histories import APIS, refusal


@pytest.mark.parametrize("api", APIS)
def test_every_provider_takes_every_result(api: str) -> None:
    refused = [found for seed in range(400) if (found := refusal(api, seed))]
    assert refused == []
