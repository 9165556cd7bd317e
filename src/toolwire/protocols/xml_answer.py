"""What a model reads after a reply in XML: the results of its calls, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.protocols.xml_render import result_block
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
    """A block for each result, in order: the tool's name, and its data or the error with what to do about it."""
    return "\n".join(
        result_block("" if result.call is None else result.call.name, success=result.success, text=result.text)
        for result in results
    )


def refuse_xml(reply: Reply) -> str:
    """Why nothing ran, with places and the form to write; for a reply that gave up, its message. Empty for a call."""
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
