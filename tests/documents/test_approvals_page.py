"""The page on approvals runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from toolwire import Session
from toolwire.permission.approval import ANSWERS
from toolwire.testing import MemoryStore

PAGE = (ROOT / "docs/approvals.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
XML = "<tool_call>\n<name>pay</name>\n<params>\n<amount>{}</amount>\n<to>Ada</to>\n</params>\n</tool_call>\n"


async def test_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[0], "docs/approvals.md", "exec"), names)
    turn = await names["session"].turn(XML.format(5) + XML.format(101))
    assert [result.success for result in turn.results] == [True, False]
    assert "'pay' may not be run: 100 at most." in turn.text
    exec(compile(BLOCKS[1], "docs/approvals.md", "exec"), names)
    exec(compile(BLOCKS[2], "docs/approvals.md", "exec"), names)
    turn = await names["session"].turn(XML.format(5) + XML.format(6))
    assert len(turn.suspended.pending) == 2
    exec(compile(BLOCKS[6], "docs/approvals.md", "exec"), names)
    assert names["waiting_tools"]() == {"pay"}
    text = await names["decide"](turn.suspended.run_id)
    assert re.findall(r"paid \d to Ada", text) == ["paid 5 to Ada", "paid 6 to Ada"]
    names["store"].close()


def test_the_approver_on_the_page_passes_the_kit() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[0], "docs/approvals.md", "exec"), names)
    exec(compile(BLOCKS[7], "docs/approvals.md", "exec"), names)
    assert len(BLOCKS) == 8


async def test_the_tools_on_the_page_are_sent_with_a_key_and_found_by_it() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[0], "docs/approvals.md", "exec"), names)
    exec(compile(BLOCKS[5], "docs/approvals.md", "exec"), names)
    assert [tool.name for tool in names["tools"]] == ["pay", "send", "transfer"]
    reply = "<tool_call><name>send</name><params><text>hi</text></params></tool_call>"
    turn = await Session(names["tools"], protocol="xml", store=MemoryStore()).turn(reply)
    (key,) = names["sent"]
    assert (turn.results[0].data, key != "", names["find"](key), names["find"]("")) == (
        "sent",
        True,
        "done",
        "not_done",
    )


async def test_the_questions_on_the_page_are_answered() -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for place in (0, 3, 4):
        exec(compile(BLOCKS[place], "docs/approvals.md", "exec"), names)
    reply = "<tool_call><name>{}</name><params><day>Monday</day></params></tool_call>"
    booked = await names["session"].turn(reply.format("book"))
    reserved = await names["seats"].turn(reply.format("reserve"))
    assert booked.results[0].data == "a table for 4 on Monday, for Ada"
    assert reserved.results[0].data == "seat Ada on Monday"


def test_the_page_names_every_verdict() -> None:
    assert tuple(dict.fromkeys(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))) == ANSWERS
