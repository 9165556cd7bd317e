"""Histories made at random, as agents have them: prompts, calls, signed thoughts, results, images, refusals."""

from __future__ import annotations

import base64
from random import Random
from typing import Any

from toolwire import ToolCall, ToolResult, protocols
from toolwire.definition.from_function import from_function
from toolwire.protocols.base import CallingProtocol

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 900).decode()
IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def look(a: int) -> str:
    """Looks."""
    return str(a)


TOOLS = [from_function(look)]


def random_history(name: str, seed: int) -> list[Any]:
    """Returns a history that its provider takes: one to four exchanges, the last one with or without steps."""
    random, protocol = Random(f"{name} {seed}"), protocols.get(name)
    found: list[Any] = []
    exchanges = random.randrange(1, 5)
    for exchange in range(exchanges):
        found += _prompt(random, protocol, exchange)
        is_last = exchange == exchanges - 1
        for at in range(random.randrange(0 if is_last else 1, 6)):
            found += _step(random, protocol, f"{exchange}_{at}")
        if not is_last and random.randrange(4):
            found += _reply(protocol, _say(protocol, f"Answer {exchange}." + "a" * random.choice([0, 3_000])))
    return found


def _prompt(random: Random, protocol: CallingProtocol, at: int) -> list[Any]:
    text = f"Prompt {at}: " + "p" * random.choice([5, 200, 3_000])
    return protocol.prompt([text, IMAGE] if protocol.is_native and not random.randrange(4) else text)


def _step(random: Random, protocol: CallingProtocol, mark: str) -> list[Any]:
    if not random.randrange(8):
        return _refused_step(protocol, mark)
    calls = [ToolCall("look", {"a": at}, id=f"call_{mark}_{at}") for at in range(random.randrange(1, 4))]
    if protocol.writes_programs:
        calls = [ToolCall("code_execution", {"code": "print(look(a=1))"})]
    results = protocol.format([_result(random, call) for call in calls])
    if isinstance(results, str):
        results = [{"role": "user", "content": f"{results}\nIf this answers the request, reply with the answer."}]
    return [*_reply(protocol, _with_thought(protocol, protocol.render(calls), mark)), *results]


def _refused_step(protocol: CallingProtocol, mark: str) -> list[Any]:
    """Returns a reply that cannot be read, and the words about it."""
    text = f"<tool_call>{mark} look(1" if not protocol.is_native else ""
    reply: Any = protocol.parse(text, TOOLS)
    words: Any = f"Your reply was not run.\n- {mark}: write a call."
    return [*_reply(protocol, reply.message or _say(protocol, mark)), *protocol.prompt(words)]


def _result(random: Random, call: ToolCall) -> ToolResult:
    text = f"result {call.id}: " + random.choice("ré水") * random.choice([10, 900, 2_000, 4_000])
    match random.randrange(5):
        case 0:
            return ToolResult.failed("tool_error", text, call=call)
        case 1:
            return ToolResult(True, content=[{"type": "text", "text": text}, IMAGE], call=call)
        case 2:
            return ToolResult(True, {"rows": [text]}, call=call)
        case _:
            return ToolResult(True, text, call=call)


def _with_thought(protocol: CallingProtocol, reply: Any, mark: str) -> Any:
    """Returns the reply with a signed thought, as the provider signs it."""
    signature = base64.b64encode(mark.encode() * 20).decode()
    if protocol.name == "anthropic":
        thought = {"type": "thinking", "thinking": f"Hm {mark}.", "signature": signature}
        return {**reply, "content": [thought, *reply["content"]]}
    if protocol.name == "gemini":
        first, *rest = reply["parts"]
        return {**reply, "parts": [{**first, "thought_signature": signature}, *rest]}
    if protocol.name == "openai-responses":
        thought = {"type": "reasoning", "id": f"rs_{mark}", "summary": [], "encrypted_content": signature}
        return [thought, *reply]
    return reply


def _say(protocol: CallingProtocol, text: str) -> Any:
    return getattr(protocol, "text_message", lambda text: text)(text)


def _reply(protocol: CallingProtocol, reply: Any) -> list[Any]:
    if isinstance(reply, str):
        return [{"role": "assistant", "content": reply}]
    return reply if isinstance(reply, list) else [reply]
