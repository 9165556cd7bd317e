"""The names from the OpenTelemetry GenAI conventions that toolwire uses, and its own additions.

The conventions are in development, and no package contains them. `CONVENTIONS` records the version used here. Change a
name only in this file, together with `CONVENTIONS`.
"""

from __future__ import annotations

CONVENTIONS = "semantic-conventions-genai of November 2026 (Development), on semantic-conventions 1.42"
"""The version of the conventions. The instrumentation scope of every span and metric carries it."""

SCOPE = "toolwire"
"""The name of the instrumentation scope."""
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
"""Recorded only if content is enabled."""
TOOL_CALL_RESULT = "gen_ai.tool.call.result"
"""Recorded only if content is enabled."""
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
PROVIDER_NAME = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR_TYPE = "error.type"
EXCEPTION = "exception"
EXCEPTION_TYPE = "exception.type"
EXCEPTION_MESSAGE = "exception.message"
OTHER = "_OTHER"
"""Replaces a value from an unbounded set, such as an invented tool name."""
EXECUTE_TOOL_DURATION = "gen_ai.execute_tool.duration"
DURATION_BOUNDARIES_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The conventions define these boundaries for other durations only. The SDK's defaults are meant for milliseconds."""

# -- our own -----------------------------------------------------------------------------------------------------
RUN_TURN = "run_turn"
"""A turn of a session. The conventions have no such operation: `invoke_agent` includes the model's work."""
AGENT_STOP = "toolwire.agent.stop"
"""Why a run of an agent ended, such as `answered`."""
REQUEST_APPROVAL = "request_approval"
CALL_ID = "toolwire.call.id"
"""The call's id in logs and ledgers. `TOOL_CALL_ID` is the provider's id if it gave one."""
RUN_ID = "toolwire.run.id"
CALL_OUTCOME = "toolwire.call.outcome"
"""One of `answered`, `failed`, `pending`."""
CALL_FROM_RECORD = "toolwire.call.from_record"
"""True if nothing ran for the call in this pass over its run."""
REQUEST_IDS = "toolwire.approval.request_ids"
"""The requests that a pending call waits for."""
REQUEST_ID = "toolwire.approval.request_id"
VERDICT = "toolwire.approval.verdict"
"""The verdict; `none` if the request stayed undecided."""
PROTOCOL = "toolwire.protocol"
TURN_CALLS = "toolwire.turn.calls"
"""Number of calls in the reply."""
TURN_OUTCOME = "toolwire.turn.outcome"
"""One of `answered`, `refused`, `suspended`."""
