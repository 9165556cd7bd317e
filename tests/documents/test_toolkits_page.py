"""The page on toolkits: its examples run, one after the other, with the results in their comments."""

from __future__ import annotations

import re
from typing import Any

from tests.architecture.source import ROOT

PAGE = (ROOT / "docs" / "toolkits.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_they_say() -> None:
    names: dict[str, Any] = {"__name__": "toolkits_page"}
    for block in BLOCKS:
        exec(compile(block, "docs/toolkits.md", "exec", dont_inherit=True), names)
    toolkit = names["toolkit"]
    properties = toolkit.tools["search"].json_schema["function"]["parameters"]["properties"]
    assert list(properties) == ["query", "limit"]
    assert names["parameters"] == [("query", "string", True), ("limit", "integer", False)]
    assert names["found"].data == ["dune 0 in books"]
    assert names["mails"] == ["mail of t-ann", "mail of t-bob"]
    assert names["offered"] == ["search"]
    assert names["offered_now"] == ["search", "route", "activate_tool_groups"]
    assert names["notes"] == "About the tools of 'maps':\nDistances are in kilometres."
    assert names["refused"] == "'pay' is disabled: the bank is closed until Monday."
    offered = [one["function"]["name"] for one in names["clerk"].get_json_schemas()]
    assert (names["clerk_offers"], offered) == ([], ["pay"])
    assert repr(names["result"].metadata["structured"]) == "Trip(city='Rome', nights=1)"
    assert names["result"].metadata["response_msg"] == "Booked."
    assert names["guest"].get_json_schemas() == []


def test_the_page_has_examples() -> None:
    assert len(BLOCKS) == 8
