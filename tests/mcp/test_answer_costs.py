"""What an answer of a server may cost: a hostile one is read in time, and says what was left out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCRequest, JSONRPCResponse

from tests.mcp.client.raw_server import BROKEN, TOOL
from tests.processor import seconds
from toolwire.mcp.answer_mending import AnswerMender
from toolwire.mcp.client_limits import BLOCKS
from toolwire.mcp.server_log import ServerLog
from toolwire.vocabulary.machine import work_clock

META = {"_meta": {PROTOCOL_VERSION_META_KEY: "2025-11-25"}}
UNKNOWN = {"type": "hologram"}


def mended(method: str, result: dict[str, Any]) -> Any:
    """Returns the result of a server as the SDK gets it."""
    answers = AnswerMender(ServerLog("raw"))
    answers.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=META))
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result=result)
    answers.mend_answer(answer)
    return answer.result


@pytest.mark.parametrize("more", [0, 1])
def test_a_result_has_a_number_of_blocks(more: int, caplog: pytest.LogCaptureFixture) -> None:
    content = [{"type": "text", "text": str(number)} for number in range(BLOCKS + more)]
    found = mended("tools/call", {"content": content})["content"]
    note = [{"type": "text", "text": "[cut: 1 more block]"}] * more
    assert found == [*content[:BLOCKS], *note]
    assert ("a result was cut after 2,000 blocks: 1 block left out" in caplog.text) == bool(more)


def test_unknown_blocks_are_their_types_also_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    content = [UNKNOWN, {"type": "text", "text": "known"}] * 3
    before = mended("tools/call", {"content": content})
    monkeypatch.setattr(work_clock, "WORK_S", -1.0)
    assert mended("tools/call", {"content": content}) == before
    assert before["content"][:2] == [{"type": "text", "text": "[hologram]"}, content[1]]


def test_a_megabyte_of_unknown_blocks_costs_at_most_a_second() -> None:
    content = [UNKNOWN] * 50_000
    assert seconds(lambda: mended("tools/call", {"content": content}), enough=1.0) <= 1.0


def test_a_list_of_broken_definitions_is_looked_at_for_a_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert mended("tools/list", {"tools": [*BROKEN, TOOL]})["tools"] == [TOOL]
    monkeypatch.setattr(work_clock, "WORK_S", -1.0)
    with caplog.at_level(logging.WARNING, "toolwire.mcp.raw"):
        assert mended("tools/list", {"tools": [*BROKEN, TOOL]})["tools"] == []
    assert "the last 5 tools of a list are off, because so many of it are broken" in caplog.text
    # A list without a fault is not looked at one by one.
    assert mended("tools/list", {"tools": [TOOL]})["tools"] == [TOOL]
