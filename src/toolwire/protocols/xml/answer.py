"""The text for the model after an XML reply: the results of its calls, or the reasons for a refusal."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.protocols.xml.render import result_block
from toolwire.vocabulary.calls import Reply
from toolwire.vocabulary.results import ToolResult

_REMINDER = """\
Write each call like this, with nothing around it:
<tool_call>
  <name>tool</name>
  <params>
    <parameter><![CDATA[value]]></parameter>
  </params>
</tool_call>

If the task cannot be done, write
<fail>why, and what could be done instead</fail>"""


def format_xml(results: Sequence[ToolResult]) -> str:
    """Returns a block for each result, in order: the tool's name, and its data or its error with a hint."""
    return "\n".join(
        result_block("" if result.call is None else result.call.name, success=result.success, text=result.text)
        for result in results
    )


def refuse_xml(reply: Reply) -> str:
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
