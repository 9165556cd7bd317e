"""The exact names that can be imported from `toolwire`."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
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
    "AgentEvent",
    "AgentResult",
    "AgentTeam",
    "AgentToolkit",
    "ApprovalRequest",
    "ArtifactConflict",
    "ArtifactError",
    "ArtifactManager",
    "AudioBlock",
    "BaseTool",
    "BindingError",
    "BoundValueError",
    "Budget",
    "CallContext",
    "CallFailed",
    "CallNotAnswered",
    "CallNotSent",
    "CallSubagentTool",
    "Caller",
    "ClientProfiles",
    "CodeExecutionTool",
    "Condition",
    "ConfigurationError",
    "CreateArtifactTool",
    "Decision",
    "DecisionRefused",
    "DefinitionError",
    "DiffArtifactTool",
    "DiskFileSystem",
    "DocumentChanged",
    "Failure",
    "FileConflict",
    "FileDomainService",
    "FileRefused",
    "FunctionTool",
    "ImageBlock",
    "InputRequired",
    "Limits",
    "ListArtifactsTool",
    "MCPClient",
    "MCPClientBase",
    "MCPToolFunction",
    "McpCredentials",
    "McpLogin",
    "McpPins",
    "Observation",
    "PermissionDecided",
    "PermissionRequested",
    "Policy",
    "Problem",
    "ProgramResult",
    "Question",
    "QuestionDeclined",
    "ReadArtifactTool",
    "RegisteredToolFunction",
    "RegistrationError",
    "Reply",
    "RestoreArtifactTool",
    "RewriteArtifactTool",
    "Rule",
    "SandboxUnavailable",
    "ServerUnavailable",
    "Session",
    "StatefulClientBase",
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
    "ToolServer",
    "ToolSpec",
    "ToolStarted",
    "ToolUseBlock",
    "Toolkit",
    "ToolwireError",
    "Turn",
    "UpdateArtifactTool",
    "WebFetchTool",
    "WebSearchTool",
    "XMLToolCallParser",
    "built_in_tools",
    "create_artifact_tools",
    "delete_file",
    "edit_file",
    "execute_python_code",
    "insert_text_file",
    "list_directory",
    "load_policy",
    "make_subagent_tool",
    "middleware",
    "parse_tool_calls",
    "protocols",
    "read_text_file",
    "reg_toolspec",
    "tool",
    "trace_toolkit",
    "view_text_file",
    "workspace_tools",
    "write_file",
    "write_text_file",
]


def test_exactly_the_documented_names_are_public() -> None:
    assert toolwire.__all__ == PUBLIC


TYPES = [
    "AgentConfig",
    "AgentOptions",
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
    "Described",
    "Disk",
    "Document",
    "Done",
    "Effect",
    "Effects",
    "EffectsOf",
    "ExecutionLog",
    "Explanation",
    "FailureKind",
    "FileEdit",
    "FileHandle",
    "FileInfo",
    "FilePage",
    "FilePath",
    "FileWritten",
    "FunctionOptions",
    "GivenDecisions",
    "Idempotency",
    "Isolation",
    "IsolationLevel",
    "KeptText",
    "Label",
    "Language",
    "Layer",
    "LogEntry",
    "McpLimitOptions",
    "McpOptions",
    "McpServerProblem",
    "Message",
    "Middleware",
    "MinIsolation",
    "NamedTools",
    "Pattern",
    "Permission",
    "PolicySource",
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
    "RunLedger",
    "RunStart",
    "RunStatus",
    "RunStore",
    "SchemaOptions",
    "Seen",
    "ServerLimitOptions",
    "ServerLimits",
    "Shorten",
    "Spill",
    "Standing",
    "Stop",
    "StubStyle",
    "SubagentTool",
    "Subject",
    "Suspended",
    "TextResource",
    "Thought",
    "Tool",
    "ToolStream",
    "TracedStream",
    "Unanswered",
    "UrlSource",
    "VariablesChange",
    "Verdict",
    "Visible",
]
SEAMS = {
    "approvals": sorted(name for name, home in toolwire._MOVED.items() if home == "approvals"),
    "doctor": ["Diagnosis", "McpServerDiagnosis", "diagnose", "diagnose_mcp", "log_in_mcp"],
    "log": ["CallStats", "Follow", "LogCheck", "LogFilter", "LogRow", "RecordedCall"],
    "types": TYPES,
}


@pytest.mark.parametrize("seam", sorted(SEAMS))
def test_names_for_a_few_users_lie_in_a_module_of_their_own(seam: str) -> None:
    module = import_module(f"toolwire.{seam}")
    assert module.__all__ == SEAMS[seam]
    assert not set(module.__all__) & set(toolwire.__all__)


@pytest.mark.parametrize("name", sorted(toolwire._MOVED))
def test_the_root_still_finds_a_name_that_moved_and_warns(name: str) -> None:
    home = f"toolwire.{toolwire._MOVED[name]}"
    with pytest.warns(DeprecationWarning, match=f"^toolwire.{name} is now {home}.{name}$"):
        found = getattr(toolwire, name)
    assert found is getattr(import_module(home), name)


@pytest.mark.parametrize("stub", ["__init__.pyi", "types.pyi"])
def test_type_checkers_and_the_lazy_loader_see_the_same_names(stub: str) -> None:
    module = toolwire.types if stub == "types.pyi" else toolwire
    for_checkers: list[str] = []
    for node in ast.parse((PACKAGE / stub).read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            # A checker offers only names that are imported as themselves.
            for_checkers += [alias.name for alias in node.names if alias.name == alias.asname]
        elif isinstance(node, ast.Assign):
            for_checkers += [target.id for target in node.targets if isinstance(target, ast.Name)]
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
    silent = [name for name in PUBLIC if not (getattr(toolwire, name).__doc__ or "").strip()]
    assert silent == []


TESTING = [
    "CHECKS",
    "PROTOCOL_CHECKS",
    "Answer",
    "AnswerError",
    "ApproverFails",
    "Flag",
    "InDoubtStep",
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
    "Said",
    "Script",
    "ScriptCallFailed",
    "ScriptTools",
    "ScriptedModel",
    "ScriptedRunner",
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
