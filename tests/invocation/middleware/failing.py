"""Tools that fail as services do."""

from __future__ import annotations

from typing import Any

from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Tool
from toolwire.vocabulary.results import ToolResult


class Service:
    """Answers by a list, and goes on with its last answer: a value, an exception to raise, or a failure's kind."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests = 0

    def __call__(self) -> Any:
        self.requests += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def tool(self, name: str = "fetch", **options: Any) -> Tool:
        """A tool that asks it."""

        def ask() -> Any:
            return self()

        return from_function(ask, name=name, **{"idempotent": "natural", **options})


def failed(kind: Any) -> ToolResult:
    """The result of a tool that reports its own failure."""
    return ToolResult.failed(kind, "no answer")
