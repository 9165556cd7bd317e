"""The names of the OpenTelemetry GenAI conventions that are used here, and our own beside them.

The conventions are in development and no package holds them: `CONVENTIONS` says which state of them this is. A name
changes here, together with it, and nowhere else.
"""

from __future__ import annotations

CONVENTIONS = "semantic-conventions-genai of November 2026 (Development), on semantic-conventions 1.42"
"""Whose names these are; the instrumentation scope of every span and metric says so."""

SCOPE = "toolwire"
"""The instrumentation scope."""
SCOPE_CONVENTIONS = "toolwire.conventions"

# -- of the conventions ------------------------------------------------------------------------------------------
OPERATION_NAME = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
FUNCTION = "function"
TOOL_DESCRIPTION = "gen_ai.tool.description"
TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
"""Only when content is asked for."""
TOOL_CALL_RESULT = "gen_ai.tool.call.result"
"""Only when content is asked for."""
AGENT_NAME = "gen_ai.agent.name"
ERROR_TYPE = "error.type"
EXCEPTION = "exception"
EXCEPTION_TYPE = "exception.type"
EXCEPTION_MESSAGE = "exception.message"
OTHER = "_OTHER"
"""Stands for a value out of an unbounded set, such as a name that a model made up."""
EXECUTE_TOOL_DURATION = "gen_ai.execute_tool.duration"
DURATION_BOUNDARIES_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The conventions give these for other durations and none for this one; the SDK's own are meant for milliseconds."""

# -- our own -----------------------------------------------------------------------------------------------------
RUN_TURN = "run_turn"
"""A session's turn. No operation of the conventions is one: `invoke_agent` includes what the model does."""
REQUEST_APPROVAL = "request_approval"
CALL_ID = "toolwire.call.id"
"""The call as logs and ledgers know it; `TOOL_CALL_ID` is the provider's id where it gave one."""
RUN_ID = "toolwire.run.id"
CALL_OUTCOME = "toolwire.call.outcome"
"""One of `answered`, `failed`, `pending`."""
CALL_FROM_RECORD = "toolwire.call.from_record"
"""True: nothing was run for it in this pass over its run."""
REQUEST_IDS = "toolwire.approval.request_ids"
"""The requests that a pending call waits for."""
REQUEST_ID = "toolwire.approval.request_id"
VERDICT = "toolwire.approval.verdict"
"""What was decided; `none` when nobody did."""
PROTOCOL = "toolwire.protocol"
TURN_CALLS = "toolwire.turn.calls"
"""How many calls the reply made."""
TURN_OUTCOME = "toolwire.turn.outcome"
"""One of `answered`, `refused`, `suspended`."""
