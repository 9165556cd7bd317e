"""The exact names that can be imported from `toolwire`."""

from __future__ import annotations

import ast

import toolwire
import toolwire.testing
from tests.architecture.source import PACKAGE

PUBLIC = [
    "AgentToolkit",
    "ApprovalRequest",
    "AudioBlock",
    "BaseTool",
    "BindingError",
    "CallContext",
    "CallFailed",
    "Caller",
    "CodeExecutionTool",
    "Condition",
    "ConfigurationError",
    "ConsoleApprover",
    "Decider",
    "Decision",
    "DecisionRefused",
    "DefinitionError",
    "Diagnosis",
    "Failure",
    "ImageBlock",
    "Limits",
    "LogCheck",
    "LogFilter",
    "LogRow",
    "Observation",
    "PermissionDecided",
    "PermissionRequested",
    "Policy",
    "Problem",
    "ProgramResult",
    "RegisteredToolFunction",
    "RegistrationError",
    "Reply",
    "Rule",
    "SandboxUnavailable",
    "Session",
    "Store",
    "StoreUnavailable",
    "SuspendedRun",
    "TextBlock",
    "ToolCall",
    "ToolCalls",
    "ToolChunk",
    "ToolCompleted",
    "ToolEvent",
    "ToolFunction",
    "ToolGroup",
    "ToolParameter",
    "ToolPermission",
    "ToolPromptGenerator",
    "ToolRegistry",
    "ToolResponse",
    "ToolResult",
    "ToolSpec",
    "ToolStarted",
    "ToolUseBlock",
    "Toolkit",
    "ToolwireError",
    "Turn",
    "XMLToolCallParser",
    "check_edit",
    "console_approver",
    "decisions_to_json",
    "diagnose",
    "execute_python_code",
    "later",
    "load_policy",
    "middleware",
    "parse_tool_calls",
    "protocols",
    "read_decisions",
    "read_edit",
    "read_suspended",
    "reg_toolspec",
    "render_request",
    "rule_for",
    "suspended_to_json",
    "tool",
    "trace_toolkit",
    "visible_text",
]


def test_exactly_the_documented_names_are_public() -> None:
    assert toolwire.__all__ == PUBLIC


def test_every_public_name_can_be_had() -> None:
    assert [name for name in PUBLIC if getattr(toolwire, name) is None] == []


def test_type_checkers_and_the_lazy_loader_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    imported = [alias.asname for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(name for name in [*imported, "AgentToolkit"] if name is not None) == PUBLIC
    assert sorted(toolwire._HOMES) == PUBLIC


def test_public_classes_and_functions_say_what_they_are() -> None:
    silent = [name for name in PUBLIC if not (getattr(toolwire, name).__doc__ or "").strip()]
    assert silent == []


TESTING = [
    "CHECKS",
    "LEDGER_CHECKS",
    "OBSERVER_CHECKS",
    "PROTOCOL_CHECKS",
    "RUNNER_CHECKS",
    "RUNNER_PROGRAMS",
    "SINK_CHECKS",
    "ApproverFails",
    "ListSink",
    "MakeLedger",
    "MakeObserver",
    "MakeRunner",
    "MakeSink",
    "MemoryLedger",
    "MemoryRun",
    "MemoryStore",
    "OpenLedger",
    "OpenSink",
    "PortFails",
    "Recorder",
    "Records",
    "Replayer",
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedRunner",
    "check_approver",
    "check_ledger",
    "check_observer",
    "check_protocol",
    "check_runner",
    "check_sink",
    "programs_run_by",
]


def test_exactly_the_documented_names_are_there_for_testing() -> None:
    assert toolwire.testing.__all__ == TESTING
    assert [name for name in TESTING if getattr(toolwire.testing, name) is None] == []
