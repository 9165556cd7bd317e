"""The text for the model after an ATTP reply: the results of its program, or the reasons for a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.results import ToolResult

_REMINDER = """\
Reply with one TOML document and nothing around it:
thought = "one line"

[tool_call]
status = "success"
target = "what the program is for"
code = '''
__result__ = tool(argument)
'''

If the task cannot be done, write below [tool_call] only
status = "fail"
message = "why, and what could be done instead"

If no tool is needed any more, answer in plain text."""


def format_attp(results: Sequence[ToolResult]) -> str:
    """Returns the results as text. Each of several results has a heading with its number and its call's name."""
    if len(results) == 1:
        return results[0].text
    return "\n".join(
        f"{_heading(result, number, len(results))}\n{result.text}" for number, result in enumerate(results, 1)
    )


def refuse_attp(reply: Reply) -> str:
    """Returns the problems and the expected form, or the message of a reply that failed.

    Empty if the reply has calls.
    """
    if reply.failure is not None:
        return f"Nothing was run: you replied that the task cannot be done.\n{reply.failure}".rstrip()
    if not reply.is_refused:
        return ""
    reasons = [
        f"- {problem.place}: {problem.message}" if problem.place else f"- {problem.message}"
        for problem in reply.problems
        if not problem.repaired
    ]
    return "\n".join(["Your reply was not run.", *reasons, "", _REMINDER])


def _heading(result: ToolResult, number: int, total: int) -> str:
    name = "" if result.call is None else " ".join(result.call.name.split())
    return f"[{number}/{total}] {name}".rstrip()
