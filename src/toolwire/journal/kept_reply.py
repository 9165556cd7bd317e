"""Conversion of a reply to JSON types and back. Every pass over a recorded run starts from the stored reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.vocabulary.calls import Problem, Reply, ToolCall
from toolwire.vocabulary.values import tag, untag


def reply_form(reply: Reply) -> dict[str, Any]:
    """Returns the reply as JSON types.

    Raises:
        Unrepresentable: An argument of a call cannot be stored.
    """
    return {
        "thought": reply.thought,
        "target": reply.target,
        "text": reply.text,
        "calls": [
            {"name": call.name, "arguments": tag(dict(call.arguments)), "id": call.id, "raw_text": call.raw_text}
            for call in reply.calls
        ],
        "problems": [
            {
                "message": problem.message,
                "repaired": problem.repaired,
                "place": problem.place,
                **({"is_loss": True} if problem.is_loss else {}),
            }
            for problem in reply.problems
        ],
        **({"is_sequence": True} if reply.is_sequence else {}),
        **({} if reply.message is None else {"message": tag(reply.message)}),
        **({} if reply.ended is None else {"ended": reply.ended}),
        **({} if reply.is_complete is None else {"is_complete": reply.is_complete}),
    }


def reply_of(document: Mapping[str, Any]) -> Reply:
    """Returns the stored reply."""
    return Reply(
        thought=document["thought"],
        target=document["target"],
        text=document["text"],
        calls=tuple(
            ToolCall(call["name"], untag(call["arguments"]), id=call["id"], raw_text=call["raw_text"])
            for call in document["calls"]
        ),
        problems=tuple(Problem(**problem) for problem in document["problems"]),
        is_sequence=document.get("is_sequence", False),
        message=untag(document.get("message")),
        ended=document.get("ended"),
        is_complete=document.get("is_complete"),
    )
