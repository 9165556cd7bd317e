"""The exact names that can be imported from `toolwire`."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import toolwire
import toolwire.testing
import toolwire.types
from tests.architecture.source import PACKAGE
from tests.patience import PATIENCE_S

PUBLIC = [
    "Agent",
    "AgentTeam",
    "ApprovalRequest",
    "AudioBlock",
    "BaseTool",
    "BindingError",
    "BoundValueError",
    "Budget",
    "CallContext",
    "CallFailed",
    "CallNotAnswered",
    "CallNotSent",
    "Caller",
    "ClientProfiles",
    "Condition",
    "ConfigurationError",
    "Decision",
    "DecisionRefused",
    "DefinitionError",
    "DocumentChanged",
    "ImageBlock",
    "InputRequired",
    "Limits",
    "MCPClient",
    "McpCredentials",
    "McpLogin",
    "Policy",
    "ProgramResult",
    "Question",
    "QuestionDeclined",
    "RegistrationError",
    "Reply",
    "Rule",
    "SandboxUnavailable",
    "ServerUnavailable",
    "Session",
    "Store",
    "StoreUnavailable",
    "TextBlock",
    "ToolCall",
    "ToolEvent",
    "ToolParameter",
    "ToolRegistry",
    "ToolResponse",
    "ToolResult",
    "ToolServer",
    "ToolSpec",
    "Toolkit",
    "ToolwireError",
    "Turn",
    "load_policy",
    "middleware",
    "protocols",
    "reg_toolspec",
    "tool",
]


def test_exactly_the_documented_names_are_public() -> None:
    assert toolwire.__all__ == PUBLIC


TYPES = [
    "AgentConfig",
    "AgentEvent",
    "AgentOptions",
    "AgentResult",
    "Annotations",
    "Approver",
    "Artifact",
    "ArtifactVersion",
    "BackgroundCall",
    "BackgroundCalls",
    "Base64Source",
    "BlobResource",
    "CallFuture",
    "CallTag",
    "ContentBlock",
    "ConversationInfo",
    "ConversationLease",
    "Decisions",
    "Disk",
    "Document",
    "Done",
    "Effect",
    "Effects",
    "EffectsOf",
    "ExecutionLog",
    "Explanation",
    "Failure",
    "FailureKind",
    "FileEdit",
    "FileHandle",
    "FileInfo",
    "FilePage",
    "FilePath",
    "FileWritten",
    "FunctionOptions",
    "FunctionTool",
    "GivenDecisions",
    "Idempotency",
    "Isolation",
    "IsolationLevel",
    "Label",
    "Language",
    "Layer",
    "LogEntry",
    "McpLimitOptions",
    "McpOptions",
    "McpPins",
    "McpServerProblem",
    "Message",
    "Middleware",
    "MinIsolation",
    "NamedTools",
    "Observation",
    "Pattern",
    "Permission",
    "PermissionDecided",
    "PermissionRequested",
    "PolicySource",
    "Problem",
    "ProgramCallRecord",
    "ProgramError",
    "ProgramStatus",
    "PromptContent",
    "PublishedOptions",
    "Reconcile",
    "Recorded",
    "RefusalCode",
    "ResourceBlock",
    "ResourceLinkBlock",
    "RuleOutcome",
    "RuleProblem",
    "RunInfo",
    "RunStatus",
    "SchemaOptions",
    "ServerLimitOptions",
    "ServerLimits",
    "Shorten",
    "Stop",
    "StubStyle",
    "SubagentTool",
    "Subject",
    "Suspended",
    "SuspendedRun",
    "TextResource",
    "Thought",
    "Tool",
    "ToolChunk",
    "ToolCompleted",
    "ToolStarted",
    "ToolStream",
    "ToolwireDeprecationWarning",
    "TracedStream",
    "Unanswered",
    "UrlSource",
    "VariablesChange",
    "Verdict",
    "Visible",
]
TOOLS = [
    "ArtifactConflict",
    "ArtifactError",
    "ArtifactManager",
    "CallSubagentTool",
    "CodeExecutionTool",
    "CreateArtifactTool",
    "DiffArtifactTool",
    "DiskFileSystem",
    "FileConflict",
    "FileDomainService",
    "FileRefused",
    "ListArtifactsTool",
    "ReadArtifactTool",
    "RestoreArtifactTool",
    "RewriteArtifactTool",
    "UpdateArtifactTool",
    "WebFetchTool",
    "WebSearchTool",
    "built_in_tools",
    "create_artifact_tools",
    "delete_file",
    "edit_file",
    "execute_python_code",
    "insert_text_file",
    "list_directory",
    "make_subagent_tool",
    "read_text_file",
    "view_text_file",
    "workspace_tools",
    "write_file",
    "write_text_file",
]
SEEDS = [
    "AgentToolkit",
    "MCPClientBase",
    "MCPToolFunction",
    "RegisteredToolFunction",
    "StatefulClientBase",
    "ToolCalls",
    "ToolFunction",
    "ToolGroup",
    "ToolPermission",
    "ToolPromptGenerator",
    "ToolUseBlock",
    "XMLToolCallParser",
    "parse_tool_calls",
    "trace_toolkit",
]
SEAMS = {
    "approvals": [
        "ConsoleApprover",
        "Decider",
        "check_edit",
        "console_approver",
        "decisions_to_json",
        "later",
        "read_decisions",
        "read_edit",
        "read_suspended",
        "render_request",
        "rule_for",
        "suspended_to_json",
        "visible_text",
    ],
    "doctor": ["Diagnosis", "McpServerDiagnosis", "diagnose", "diagnose_mcp", "log_in_mcp"],
    "log": ["CallStats", "Follow", "LogCheck", "LogFilter", "LogRow", "RecordedCall"],
    "seeds": SEEDS,
    "tools": TOOLS,
    "types": TYPES,
}


@pytest.mark.parametrize("seam", sorted(SEAMS))
def test_names_for_a_few_users_lie_in_a_module_of_their_own(seam: str) -> None:
    module = import_module(f"toolwire.{seam}")
    assert module.__all__ == SEAMS[seam]
    assert not set(module.__all__) & set(toolwire.__all__)


@pytest.mark.parametrize("module", ["tools", "seeds"])
def test_the_root_gives_the_names_of_the_box_and_of_older_systems_without_listing_them(module: str) -> None:
    home = import_module(f"toolwire.{module}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [name for name in home.__all__ if getattr(toolwire, name) is not getattr(home, name)] == []
    assert not set(home.__all__) & {*toolwire.__all__, *dir(toolwire)}


@pytest.mark.parametrize("stub", ["__init__", "seeds", "tools", "types"])
def test_type_checkers_and_the_lazy_loader_see_the_same_names(stub: str) -> None:
    module = toolwire if stub == "__init__" else import_module(f"toolwire.{stub}")
    for_checkers: list[str] = []
    for node in ast.parse((PACKAGE / f"{stub}.pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            # A checker offers only names that are imported as themselves.
            for_checkers += [alias.name for alias in node.names if alias.name == alias.asname]
    assert sorted(for_checkers) == module.__all__ == dir(module)
    assert [name for name in module.__all__ if getattr(module, name) is None] == []
    with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute 'Nothing'$"):
        _ = module.Nothing


def test_a_star_import_gives_every_public_name() -> None:
    found: dict[str, object] = {}
    exec("from toolwire import *", found)
    assert sorted(found.keys() - {"__builtins__"}) == PUBLIC


def test_the_names_are_found_in_a_zip_file_too(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "package"), "zip", PACKAGE.parent, PACKAGE.name)
    code = "import toolwire; print(toolwire.ToolCall('add').name, toolwire.__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": archive},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert run.stdout == f"add {archive}/toolwire/__init__.py\n"


def test_public_classes_and_functions_say_what_they_are() -> None:
    silent = [name for name in (*PUBLIC, *TOOLS, *SEEDS) if not (getattr(toolwire, name).__doc__ or "").strip()]
    assert silent == []


TESTING = [
    "CHECKS",
    "PROTOCOL_CHECKS",
    "Answer",
    "AnswerError",
    "ApproverFails",
    "Described",
    "Flag",
    "InDoubtStep",
    "KeptText",
    "MakeApprover",
    "MemoryRun",
    "MemoryStore",
    "Person",
    "PortFails",
    "Program",
    "ProgramCall",
    "ProgramParameter",
    "ProgramRunner",
    "ProgramTool",
    "Recorder",
    "Replay",
    "Replayer",
    "RunLedger",
    "RunStart",
    "RunStore",
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedModel",
    "ScriptedRunner",
    "Seen",
    "Spill",
    "Standing",
    "Start",
    "Step",
    "check_approver",
    "check_protocol",
    "programs_run_by",
]


def test_exactly_the_documented_names_are_there_for_testing() -> None:
    assert toolwire.testing.__all__ == TESTING
    assert [name for name in TESTING if getattr(toolwire.testing, name) is None] == []


def test_exactly_the_documented_names_are_there_for_models() -> None:
    import toolwire.models

    assert toolwire.models.__all__ == [
        "AnthropicModel",
        "FailureCause",
        "GeminiModel",
        "Model",
        "ModelFailed",
        "OpenAIModel",
        "Price",
        "Request",
        "Usage",
    ]
