"""A damaged call in a text runs as it was written or not at all, wherever its arguments have come to stand."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest

from tests.protocols.native_damages import damage
from toolwire import Reply
from toolwire.protocols import get

CASES = 600
FORMATS = ["json", "xml"]


def purge(table: str = "all", where: str | None = None, limit: int = 0) -> None:
    """Deletes rows."""


def drop(id: str = "all", status: str = "any") -> None:
    """Drops records."""


TOOLS = [purge, drop]
VALUES = ["t1", "a b", "{}", "x=1", "<b>", "5"]


def _call(random: Random) -> tuple[str, dict[str, str]]:
    name, parameters = random.choice([("purge", ["table", "where"]), ("drop", ["id", "status"])])
    given = random.sample(parameters, random.choice([1, 1, 2]))
    return name, {parameter: random.choice(VALUES) for parameter in given}


def _runs_another(reply: Reply, name: str, arguments: dict[str, str]) -> list[Any]:
    read = [(call.name, dict(call.arguments)) for call in reply.calls]
    return [call for call in read if call != (name, arguments) and call[0] in ("purge", "drop")]


ENVELOPES = [
    lambda name, arguments: {"name": name, "arguments": arguments},
    lambda name, arguments: {"name": name, "arguments": json.dumps(arguments)},
    lambda name, arguments: {"name": name, "args": arguments},
    lambda name, arguments: {"type": "tool_use", "id": "x", "name": name, "input": arguments},
    lambda name, arguments: {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}},
    lambda name, arguments: {"tool_calls": [{"id": "c", "function": {"name": name, "arguments": arguments}}]},
    lambda name, arguments: {"functionCall": {"name": name, "args": arguments}},
]
AROUND = [
    "<tool_call>\n{}\n</tool_call>",
    "{}",
    "<tool_call>[{}]</tool_call>",
    "[TOOL_CALLS][{}]",
    "<|python_tag|>{}",
    "```json\n{}\n```",
    "I look.\n<tool_call>{}</tool_call>",
    "<function_call>{}</function_call>",
]


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_call_in_json_runs_with_no_other_arguments(format: str) -> None:
    found: dict[str, Any] = {}
    for seed in range(CASES):
        random = Random(seed)
        name, arguments = _call(random)
        damaged, what = damage(random, random.choice(ENVELOPES)(name, arguments))
        if "is missing" in what:
            continue  # nobody knows of it
        text = random.choice(AROUND).replace("{}", json.dumps(damaged))
        if runs := _runs_another(get(format).parse(text, TOOLS), name, arguments):
            found[text] = runs
    assert found == {}


PLACES = ["call", "name", "block", "own", "other", "before", "behind", "outside"]


def _in_xml(random: Random, name: str, arguments: dict[str, str]) -> str:
    """Returns a call with one of its arguments in an attribute, or in an element or object beside the others."""
    moved, *others = random.sample(list(arguments), len(arguments))
    place = random.choice([place for place in PLACES if others or place != "other"])
    value, key = arguments[moved], random.choice([moved, moved.upper(), "value", "arguments"])
    written = f" {key}={quoteattr(value)}"
    at = {place: written, "own": f" {random.choice(['name', 'value', moved])}={quoteattr(value)}"}
    element = f"<{moved}>{escape(value)}</{moved}>"
    inner = [f"<{other}{at.get('other', '')}>{escape(arguments[other])}</{other}>" for other in others]
    if place == "own":
        inner.append(random.choice([f"<{moved}{at['own']}/>", f"<{moved}{at['own']}></{moved}>"]))
    has_block = place in ("block", "before", "behind") or random.random() < 0.6
    block = f"<params{at.get('block', '')}>{''.join(inner)}</params>" if has_block else "".join(inner)
    is_named = place != "name" and random.random() < 0.4
    call = f" name={quoteattr(name)}{at.get('call', '')}" if is_named else at.get("call", "")
    head = "" if is_named else f"<name{at.get('name', '')}>{name}</name>"
    before, behind = (element if place == one else "" for one in ("before", "behind"))
    whole = f"<tool_call{call}>{head}{before}{block}{behind}</tool_call>"
    return f"{whole}\n{random.choice([element, json.dumps({moved: value})])}" if place == "outside" else whole


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_call_in_xml_runs_with_no_other_arguments(format: str) -> None:
    found: dict[str, Any] = {}
    for seed in range(CASES):
        random = Random(seed)
        name, arguments = _call(random)
        text = _in_xml(random, name, arguments)
        if runs := _runs_another(get(format).parse(text, TOOLS), name, arguments):
            found[text] = runs
    assert found == {}
