"""Damages of native replies, whole and in pieces: fields under other names, at other places and of other types.

None of them changes what is inside of the arguments of a call, so each call that is read must be one that was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, cast

from tests.protocols.streamed_replies import TOOLS, streamed_reply
from toolwire import ConfigurationError, Reply
from toolwire.protocols import get

ARGUMENTS = frozenset({"arguments", "input", "args", "partial_json", "partialArgs", "delta"})
"""Fields that hold arguments or a piece of them. `delta` is one in events of responses, where it is a text."""

NAMES_OF_TOOLS = {tool.__name__ for tool in TOOLS}

NAMES = {
    "arguments": ["argument", "params", "kwargs", "input", "args", "Arguments"],
    "input": ["arguments", "parameters", "inputs"],
    "args": ["arguments", "input", "params"],
    "functionCall": ["functionCalls", "functioncall", "toolUse"],
    "tool_calls": ["tool_call", "function_calls"],
    "function": ["Function", "func"],
    "content": ["contents", "output_text"],
    "text": ["txt", "value"],
    "type": ["kind"],
    "name": ["tool", "tool_name"],
    "message": ["delta", "msg"],
    "delta": ["message", "partial"],
    "parts": ["part", "content"],
}
"""Other names that servers and gateways give to fields."""


def damage(random: Random, value: Any, *, is_piece: bool = False) -> tuple[Any, str]:
    """Returns a copy of a reply or piece with one damage, and what it is. What a piece lacks leaves no trace."""
    damaged = deepcopy(value)
    holders = [holder for holder in _mappings(damaged) if holder]
    if not holders:
        return damaged, ""
    holder = random.choice(holders)
    key = random.choice(list(holder))
    kind = random.choice(["rename", "type", "beside", "drop", "wrap"])
    if kind == "rename" and key in NAMES:
        other = random.choice(NAMES[key])
        holder[other] = holder.pop(key)
        return damaged, f"{key!r} is {other!r}"
    if kind == "beside" and holder.get("name") in ("weather", "weather_map") and (found := _with_arguments(holder)):
        name, given = found
        moved = random.choice(list(given))
        if given[moved] is None:
            return damaged, ""  # the field of an object of an SDK that is not set
        holder[moved] = given.pop(moved)
        holder[name] = json.dumps(given) if isinstance(holder[name], str) else given
        return damaged, f"{moved!r} stands beside {name!r}"
    if kind == "drop" and key not in ARGUMENTS and not is_piece:
        del holder[key]
        return damaged, f"{key!r} is missing"
    if kind == "type" and key not in ARGUMENTS:
        holder[key] = random.choice([5, [holder[key]], {"value": holder[key]}, *([] if is_piece else [None])])
        return damaged, f"{key!r} is {type(holder[key]).__name__}"
    if kind == "wrap" and isinstance(holder[key], dict | list):
        holder[key] = json.dumps(holder[key])
        return damaged, f"{key!r} is JSON text"
    return damaged, ""


def lost(provider: str, seed: int) -> str:
    """Returns what a damaged reply of this seed loses without a word, or runs that nobody wrote. Empty if nothing."""
    random, case = Random(f"damage {provider} {seed}"), streamed_reply(provider, seed)
    protocol = get(provider)
    right = protocol.parse(case.whole, TOOLS)
    if right.is_refused:
        return ""
    is_streamed = all(isinstance(piece, dict) for piece in case.pieces) and random.random() < 0.6
    try:
        if is_streamed:
            place = random.randrange(len(case.pieces))
            pieces = list(case.pieces)
            pieces[place], what = damage(random, pieces[place], is_piece=True)
            stream = protocol.stream(TOOLS)
            for piece in pieces:
                stream.feed(piece)
            found = stream.reply()
        else:
            whole, what = damage(random, case.whole)
            found = protocol.parse(whole, TOOLS)
    except ConfigurationError:
        return ""
    said = _difference(right, found, is_silent=" is missing" in what or " is NoneType" in what)
    return f"{'streamed' if is_streamed else 'whole'}, {what}: {said}" if said else ""


def _difference(right: Reply, found: Reply, *, is_silent: bool) -> str:
    """Returns what is wrong with a reply. With `is_silent` the damage leaves no trace, so that only calls count."""
    written, read = _calls(right), _calls(found)
    rest = list(written)
    # Without its number the place of a call among the others is not known.
    if not all(call in rest and rest.remove(call) is None for call in read):
        return f"{read} was read, and {written} was written"
    is_unknown = len(read) < len(found.calls)  # such a call is refused where it runs
    is_told = is_silent or is_unknown or bool(found.problems) or found.ended in ("paused", "failed")
    if len(read) < len(written) and not is_told:
        return f"{len(written) - len(read)} calls are lost without a word"
    if right.text and not found.text and not read and not is_told:
        return f"the answer {right.text!r} is lost without a word"
    return ""


def _calls(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in reply.calls if call.name in NAMES_OF_TOOLS]


def _with_arguments(holder: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Returns the field of the arguments of a call, and the arguments. None for any other object."""
    for name in ("arguments", "input", "args"):
        value = holder.get(name)
        try:
            given = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            continue
        if isinstance(given, dict) and given:
            return name, cast("dict[str, Any]", given)
    return None


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of a reply, without those inside of arguments."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _mappings(item)
    elif isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        yield node
        for key, item in node.items():
            if key not in ("arguments", "input", "args"):
                yield from _mappings(item)
