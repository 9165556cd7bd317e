"""The guard on runs that have read private data and untrusted text, in whole flows."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from toolwire.facade.registry import ToolRegistry
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.permission.policy import Rule
from toolwire.session.session import Session
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


@dataclass
class House:
    """Tools with effects of every kind, and a list of all that they sent."""

    sent: list[str] = field(default_factory=list)

    def registry(self) -> ToolRegistry:
        registry = ToolRegistry(rules=[Rule(effect="auto", tool="*")])
        for name, options in _TOOLS.items():
            registry.register(ToolSpec.from_function(self._function(name), name=name, **options))
        for name, options in _OUTSIDE.items():
            value = {"name": name, "inputSchema": SCHEMA, "annotations": HINTS}
            registry.register(ToolSpec.from_mcp(value, self._function(name), **options))
        return registry

    def _function(self, name: str) -> Any:
        def run(text: str = "") -> str:
            """Does it."""
            if name == "broken_web":
                raise ValueError("half of a page")
            if name in _SENDERS:
                self.sent.append(name)
            return f"{name}: {text}"

        return run


_TOOLS: dict[str, dict[str, Any]] = {
    "web": {"effects": ["read"], "labels": ["untrusted"]},
    "broken_web": {"effects": ["read"], "labels": ["untrusted"]},
    "mailbox": {"effects": ["read"], "labels": ["untrusted", "private"]},
    "files": {"effects": ["read"], "labels": ["private"]},
    "calendar": {"effects": ["read"], "labels": ["private"]},
    "weather": {"effects": ["read"]},
    "note": {"effects": ["write"]},
    "compute": {},
    "mail": {"effects": ["send"]},
    "post": {"effects": ["write", "send"]},
}
_OUTSIDE: dict[str, dict[str, Any]] = {
    "remote": {},
    "remote_lookup": {"effects": ["read"]},
    "remote_chat": {"effects": ["send"]},
}
_SENDERS = frozenset({"mail", "post", "remote", "remote_chat"})

Flow = list[list[str] | str]
"""Turns: the tools that are called side by side, or a program."""

GATED: list[Flow] = [
    [["web"], ["files"], ["mail"]],
    [["files"], ["web"], ["mail"]],
    [["files", "web"], ["mail"]],
    [["mailbox"], ["mail"]],
    [["mailbox"], ["post"]],
    [["mailbox"], ["note"], ["weather"], ["compute"], ["post"]],
    [["calendar"], ["weather"], ["web"], ["note"], ["mail"]],
    [["files"], ["broken_web"], ["mail"]],
    [["files"], ["remote_lookup"], ["mail"]],
    [["mailbox"], ["remote"]],
    [["files"], ["remote_lookup"], ["remote"]],
    [["files"], ["remote_lookup"], ["remote_chat"]],
    [["web"], ["calendar"], ["remote_chat"]],
    ["web()\nfiles()\nmail()"],
    ["files()\nfor page in ['a', 'b']:\n    web(text=page)\npost(text='x')"],
    ["mailbox()\ntry:\n    mail()\nexcept Exception:\n    print('no')"],
    ["web()", ["files"], ["mail"]],
    [["files"], "web()", ["mail"]],
    [["files"], ["web"], "mail(text=files())"],
    ["try:\n    broken_web()\nexcept Exception:\n    pass\nfiles()\nremote()"],
]

_READERS = ["weather", "note", "compute", "remote_lookup"]
BENIGN: list[Flow] = [
    *([[reader], ["mail"]] for reader in ("files", "calendar", "web", "broken_web", *_READERS)),
    *([[reader], ["post"]] for reader in ("files", "calendar", "web", "broken_web", *_READERS)),
    *([[reader], ["remote_chat"]] for reader in ("files", "calendar", "web", *_READERS)),
    *([["files"], [reader], ["mail"]] for reader in ("calendar", "weather", "note", "compute")),
    *([["web"], [reader], ["mail"]] for reader in ("broken_web", *_READERS)),
    *([["web"], ["files"], [reader]] for reader in ("calendar", *_READERS)),
    *([["mailbox"], [reader]] for reader in ("web", "files", "calendar", *_READERS)),
    *([[sender], ["files"], ["web"]] for sender in ("mail", "post", "remote_chat")),
    *([[sender], ["mailbox"], ["note"]] for sender in ("mail", "post", "remote_chat")),
    *([[sender]] for sender in sorted(_SENDERS)),
    *([[one, other], ["note"]] for one in ("web", "mailbox") for other in ("files", "calendar", "weather")),
    *([["compute"], [reader], [sender]] for reader in ("weather", "files") for sender in ("mail", "post")),
    *([["weather"], [sender], [reader]] for reader in ("web", "mailbox") for sender in ("mail", "post")),
    *([["note"], [reader], ["note"], ["mail"]] for reader in ("files", "calendar", "web", "remote_lookup")),
    *([[reader, other]] for reader in ("web", "files") for other in ("mail", "post")),
    *([["remote_lookup"], [reader], ["compute"]] for reader in ("files", "calendar", "web")),
    *([["calendar"], ["files"], [sender]] for sender in ("mail", "post", "remote", "remote_chat")),
    *([["web"], ["remote_lookup"], [sender]] for sender in ("mail", "post", "remote", "remote_chat")),
    *([f"{reader}()\n{sender}()"] for reader in ("files", "web", "weather") for sender in ("mail", "post")),
    *([["mail"], [reader], ["mail"]] for reader in ("files", "web")),
    *([f"web()\nfiles()\n{last}()"] for last in ("note", "compute")),
    [["web"], ["calendar"], ["mail"]],
    [["mailbox"], ["mail"]],
    [["files"], ["remote_lookup"], ["post"]],
]
"""Everyday flows of work. The last three mix both and send all the same: the guard asks about those too."""


def made(flow: Flow) -> list[str]:
    """The texts sent in a session that goes through the flow without an approver."""
    house = House()

    async def go() -> None:
        session = Session(house.registry(), protocol="attp", min_isolation="process")
        for turn in flow:
            calls = [ToolCall(name, {}) for name in turn] if isinstance(turn, list) else [_program(turn)]
            await session.turn(Reply(calls=tuple(calls)))

    asyncio.run(go())
    return house.sent


def _program(code: str) -> ToolCall:
    return ToolCall(CODE_EXECUTION, {"code": code})


def wanted(flow: Flow) -> list[str]:
    """The texts that an unguarded session would send, each as often as the flow names it."""
    names = [name for turn in flow if isinstance(turn, list) for name in turn]
    text = "\n".join(turn for turn in flow if isinstance(turn, str))
    return sorted(name for name in _SENDERS for _ in range(names.count(name) + text.count(f"{name}(")))


@pytest.mark.threat(25)
@pytest.mark.parametrize("flow", GATED, ids=range(len(GATED)))
def test_a_doubly_tainted_run_never_sends_without_asking(flow: Flow) -> None:
    assert made(flow) == []


@pytest.mark.threat(25)
def test_hardly_any_honest_flow_is_held_up() -> None:
    gated = [flow for flow in BENIGN if sorted(made(flow)) != wanted(flow)]
    assert (len(GATED), len(BENIGN)) == (20, 100)
    assert gated == BENIGN[-3:]


@pytest.mark.threat(25)
def test_without_the_guard_each_of_them_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.permission.policy.gate_reason", lambda subject: "")
    assert [flow for flow in GATED if not made(flow)] == []
