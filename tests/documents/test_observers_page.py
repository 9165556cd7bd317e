"""The page on observers: its examples run, one after the other, and give what their comments say."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, get_args

from tests.architecture.source import ROOT
from toolwire import ToolEvent
from toolwire.facade.observing.observation import STOP_WAIT_S, WAITING_LIMIT
from toolwire.vocabulary.call_events import EventType

PAGE = (ROOT / "docs" / "observers.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REPLY = "<tool_call><name>login</name><params><user>ada</user><password>hunter2</password></params></tool_call>"


def page() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "observers_page"}
    for block in BLOCKS:
        exec(compile(block, "docs/observers.md", "exec", dont_inherit=True), names)
    return names


def test_the_first_example_gives_what_it_says() -> None:
    names = page()
    assert names["types"] == ["TOOL_START", "TOOL_COMPLETE"]
    assert names["arguments"] == {"user": "ada", "password": "<redacted>"}


def test_the_server_sent_events_of_a_turn_arrive_in_order_and_end() -> None:
    names = page()

    async def read() -> list[str]:
        return [text async for text in names["server_sent_events"](REPLY)]

    sent = asyncio.run(read())
    assert [text.split("\n")[0] for text in sent] == ["event: TOOL_START", "event: TOOL_COMPLETE"]
    assert all(text.endswith("\n\n") and text.count("\n") == 3 for text in sent)
    last = json.loads(sent[1].split("\n")[1].removeprefix("data: "))
    assert (last["status"], last["result"], last["tool"]) == ("success", "welcome, ada", "login")
    body = BLOCKS[-1].split("async def server_sent_events", 1)[1]
    assert len([line for line in body.splitlines()[1:] if line.strip()]) <= 10


def test_the_page_has_every_event_with_its_fields_and_the_limits() -> None:
    assert set(re.findall(r"`(TOOL_[A-Z]+|PERMISSION_[A-Z]+)`", PAGE)) == set(get_args(EventType))
    for kind in ToolEvent.__subclasses__():
        own = [name for name in kind.__dataclass_fields__ if name not in ToolEvent.__dataclass_fields__]
        row = f"| `{kind.__name__}` | `{kind.type}` |"
        (line,) = [line for line in PAGE.splitlines() if line.startswith(row)]
        assert line.endswith(f"| {', '.join(f'`{name}`' for name in own)} |")
    assert (f"{WAITING_LIMIT:,} events" in PAGE, f"{STOP_WAIT_S:g} seconds" in PAGE) == (True, True)
