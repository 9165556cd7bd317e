"""The tool layer between a language model and the tools it may use.

The first three things to do:

1. Write files that run as they are, from a shell: `toolwire init my_agent`, or `python -m toolwire init my_agent`.
2. Give your functions to a model: `session = Session([function], protocol="openai")`, then `session.run_turn(response)`
   for each answer of the provider's SDK. `help(toolwire.Session)` has the loop.
3. Call a tool yourself, down the same path: `registry = ToolRegistry()`, `registry.register(function)` and
   `registry.invoke("name", {"argument": 1})`. `help(toolwire.ToolRegistry)` says what else it does.

Everything public can be imported from here; each name is loaded when it is first used.
"""

from importlib import import_module

# typing costs 20 ms; type checkers take this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from toolwire import middleware as middleware
    from toolwire import protocols as protocols
    from toolwire.agent.agent import Agent as Agent
    from toolwire.agent.result import AgentEvent as AgentEvent
    from toolwire.agent.result import AgentResult as AgentResult
    from toolwire.agent.result import Budget as Budget
    from toolwire.agent.team import AgentTeam as AgentTeam
    from toolwire.agent.team import CallSubagentTool as CallSubagentTool
    from toolwire.agent.team import make_subagent_tool as make_subagent_tool
    from toolwire.catalogue.groups import ToolGroup as ToolGroup
    from toolwire.definition.parameters import ToolParameter as ToolParameter
    from toolwire.facade.built_in.artifact_tools import CreateArtifactTool as CreateArtifactTool
    from toolwire.facade.built_in.artifact_tools import DiffArtifactTool as DiffArtifactTool
    from toolwire.facade.built_in.artifact_tools import ListArtifactsTool as ListArtifactsTool
    from toolwire.facade.built_in.artifact_tools import ReadArtifactTool as ReadArtifactTool
    from toolwire.facade.built_in.artifact_tools import RestoreArtifactTool as RestoreArtifactTool
    from toolwire.facade.built_in.artifact_tools import RewriteArtifactTool as RewriteArtifactTool
    from toolwire.facade.built_in.artifact_tools import UpdateArtifactTool as UpdateArtifactTool
    from toolwire.facade.built_in.artifact_tools import create_artifact_tools as create_artifact_tools
    from toolwire.facade.built_in.box import built_in_tools as built_in_tools
    from toolwire.facade.built_in.code_execution_tool import CodeExecutionTool as CodeExecutionTool
    from toolwire.facade.built_in.execute_python_code import execute_python_code as execute_python_code
    from toolwire.facade.built_in.file_tools import DiskFileSystem as DiskFileSystem
    from toolwire.facade.built_in.file_tools import FileDomainService as FileDomainService
    from toolwire.facade.built_in.file_tools import delete_file as delete_file
    from toolwire.facade.built_in.file_tools import edit_file as edit_file
    from toolwire.facade.built_in.file_tools import list_directory as list_directory
    from toolwire.facade.built_in.file_tools import read_text_file as read_text_file
    from toolwire.facade.built_in.file_tools import workspace_tools as workspace_tools
    from toolwire.facade.built_in.file_tools import write_file as write_file
    from toolwire.facade.built_in.raw_files import insert_text_file as insert_text_file
    from toolwire.facade.built_in.raw_files import view_text_file as view_text_file
    from toolwire.facade.built_in.raw_files import write_text_file as write_text_file
    from toolwire.facade.built_in.web_search_tool import WebSearchTool as WebSearchTool
    from toolwire.facade.built_in.web_tools import WebFetchTool as WebFetchTool
    from toolwire.facade.observing.observation import Observation as Observation
    from toolwire.facade.registry import ToolRegistry as ToolRegistry
    from toolwire.facade.toolkits.registered import RegisteredToolFunction as RegisteredToolFunction
    from toolwire.facade.toolkits.registered import ToolFunction as ToolFunction
    from toolwire.facade.toolkits.toolkit import Toolkit as Toolkit
    from toolwire.facade.toolkits.trace_toolkit import trace_toolkit as trace_toolkit
    from toolwire.facade.tools.base_tool import BaseTool as BaseTool
    from toolwire.facade.tools.base_tool import ToolPermission as ToolPermission
    from toolwire.facade.tools.function_tool import FunctionTool as FunctionTool
    from toolwire.facade.tools.function_tool import tool as tool
    from toolwire.facade.tools.reg_toolspec import reg_toolspec as reg_toolspec
    from toolwire.facade.tools.tool_spec import ToolSpec as ToolSpec
    from toolwire.facade.tools.xml_parser import ToolCalls as ToolCalls
    from toolwire.facade.tools.xml_parser import ToolPromptGenerator as ToolPromptGenerator
    from toolwire.facade.tools.xml_parser import XMLToolCallParser as XMLToolCallParser
    from toolwire.facade.tools.xml_parser import parse_tool_calls as parse_tool_calls
    from toolwire.files.paths import FileConflict as FileConflict
    from toolwire.files.paths import FileRefused as FileRefused
    from toolwire.gateway.client_profiles import ClientProfiles as ClientProfiles
    from toolwire.gateway.tool_server import ToolServer as ToolServer
    from toolwire.journal.artifacts.artifact import ArtifactConflict as ArtifactConflict
    from toolwire.journal.artifacts.artifact import ArtifactError as ArtifactError
    from toolwire.journal.artifacts.manager import ArtifactManager as ArtifactManager
    from toolwire.journal.run import SuspendedRun as SuspendedRun
    from toolwire.journal.store import Store as Store
    from toolwire.mcp.client import MCPClient as MCPClient
    from toolwire.mcp.client import MCPClientBase as MCPClientBase
    from toolwire.mcp.client import StatefulClientBase as StatefulClientBase
    from toolwire.mcp.oauth.authorization import McpCredentials as McpCredentials
    from toolwire.mcp.oauth.authorization import McpLogin as McpLogin
    from toolwire.mcp.pins import McpPins as McpPins
    from toolwire.mcp.tool_function import MCPToolFunction as MCPToolFunction
    from toolwire.permission.approval import ApprovalRequest as ApprovalRequest
    from toolwire.permission.approval import Decision as Decision
    from toolwire.permission.approval import DecisionRefused as DecisionRefused
    from toolwire.permission.condition import Condition as Condition
    from toolwire.permission.policy import Policy as Policy
    from toolwire.permission.policy import Rule as Rule
    from toolwire.permission.policy_file import load_policy as load_policy
    from toolwire.sandbox.limits import Limits as Limits
    from toolwire.sandbox.report import ProgramResult as ProgramResult
    from toolwire.session.session import Session as Session
    from toolwire.session.turn import Turn as Turn
    from toolwire.vocabulary.blocks import AudioBlock as AudioBlock
    from toolwire.vocabulary.blocks import ImageBlock as ImageBlock
    from toolwire.vocabulary.blocks import TextBlock as TextBlock
    from toolwire.vocabulary.blocks import ToolUseBlock as ToolUseBlock
    from toolwire.vocabulary.call_events import PermissionDecided as PermissionDecided
    from toolwire.vocabulary.call_events import PermissionRequested as PermissionRequested
    from toolwire.vocabulary.call_events import ToolChunk as ToolChunk
    from toolwire.vocabulary.call_events import ToolCompleted as ToolCompleted
    from toolwire.vocabulary.call_events import ToolEvent as ToolEvent
    from toolwire.vocabulary.call_events import ToolStarted as ToolStarted
    from toolwire.vocabulary.calls import Caller as Caller
    from toolwire.vocabulary.calls import Problem as Problem
    from toolwire.vocabulary.calls import Reply as Reply
    from toolwire.vocabulary.calls import ToolCall as ToolCall
    from toolwire.vocabulary.context import CallContext as CallContext
    from toolwire.vocabulary.errors import BindingError as BindingError
    from toolwire.vocabulary.errors import BoundValueError as BoundValueError
    from toolwire.vocabulary.errors import CallNotAnswered as CallNotAnswered
    from toolwire.vocabulary.errors import CallNotSent as CallNotSent
    from toolwire.vocabulary.errors import ConfigurationError as ConfigurationError
    from toolwire.vocabulary.errors import DefinitionError as DefinitionError
    from toolwire.vocabulary.errors import DocumentChanged as DocumentChanged
    from toolwire.vocabulary.errors import RegistrationError as RegistrationError
    from toolwire.vocabulary.errors import SandboxUnavailable as SandboxUnavailable
    from toolwire.vocabulary.errors import ServerUnavailable as ServerUnavailable
    from toolwire.vocabulary.errors import StoreUnavailable as StoreUnavailable
    from toolwire.vocabulary.errors import ToolwireError as ToolwireError
    from toolwire.vocabulary.failures import Failure as Failure
    from toolwire.vocabulary.questions import InputRequired as InputRequired
    from toolwire.vocabulary.questions import Question as Question
    from toolwire.vocabulary.questions import QuestionDeclined as QuestionDeclined
    from toolwire.vocabulary.response import ToolResponse as ToolResponse
    from toolwire.vocabulary.results import CallFailed as CallFailed
    from toolwire.vocabulary.results import ToolResult as ToolResult

    AgentToolkit = Toolkit
    __version__: str

_HOMES = {
    "Agent": "agent.agent",
    "AgentEvent": "agent.result",
    "AgentResult": "agent.result",
    "AgentTeam": "agent.team",
    "AgentToolkit": "facade.toolkits.toolkit:Toolkit",
    "ApprovalRequest": "permission.approval",
    "ArtifactConflict": "journal.artifacts.artifact",
    "ArtifactError": "journal.artifacts.artifact",
    "ArtifactManager": "journal.artifacts.manager",
    "AudioBlock": "vocabulary.blocks",
    "BaseTool": "facade.tools.base_tool",
    "BindingError": "vocabulary.errors",
    "BoundValueError": "vocabulary.errors",
    "Budget": "agent.result",
    "CallContext": "vocabulary.context",
    "CallFailed": "vocabulary.results",
    "CallNotAnswered": "vocabulary.errors",
    "CallNotSent": "vocabulary.errors",
    "CallSubagentTool": "agent.team",
    "Caller": "vocabulary.calls",
    "ClientProfiles": "gateway.client_profiles",
    "CodeExecutionTool": "facade.built_in.code_execution_tool",
    "Condition": "permission.condition",
    "ConfigurationError": "vocabulary.errors",
    "CreateArtifactTool": "facade.built_in.artifact_tools",
    "Decision": "permission.approval",
    "DecisionRefused": "permission.approval",
    "DefinitionError": "vocabulary.errors",
    "DiffArtifactTool": "facade.built_in.artifact_tools",
    "DiskFileSystem": "facade.built_in.file_tools",
    "DocumentChanged": "vocabulary.errors",
    "Failure": "vocabulary.failures",
    "FileConflict": "files.paths",
    "FileDomainService": "facade.built_in.file_tools",
    "FileRefused": "files.paths",
    "FunctionTool": "facade.tools.function_tool",
    "ImageBlock": "vocabulary.blocks",
    "InputRequired": "vocabulary.questions",
    "Limits": "sandbox.limits",
    "ListArtifactsTool": "facade.built_in.artifact_tools",
    "MCPClient": "mcp.client",
    "MCPClientBase": "mcp.client",
    "MCPToolFunction": "mcp.tool_function",
    "McpCredentials": "mcp.oauth.authorization",
    "McpLogin": "mcp.oauth.authorization",
    "McpPins": "mcp.pins",
    "Observation": "facade.observing.observation",
    "PermissionDecided": "vocabulary.call_events",
    "PermissionRequested": "vocabulary.call_events",
    "Policy": "permission.policy",
    "Problem": "vocabulary.calls",
    "ProgramResult": "sandbox.report",
    "Question": "vocabulary.questions",
    "QuestionDeclined": "vocabulary.questions",
    "ReadArtifactTool": "facade.built_in.artifact_tools",
    "RegisteredToolFunction": "facade.toolkits.registered",
    "RegistrationError": "vocabulary.errors",
    "Reply": "vocabulary.calls",
    "RestoreArtifactTool": "facade.built_in.artifact_tools",
    "RewriteArtifactTool": "facade.built_in.artifact_tools",
    "Rule": "permission.policy",
    "SandboxUnavailable": "vocabulary.errors",
    "ServerUnavailable": "vocabulary.errors",
    "Session": "session.session",
    "StatefulClientBase": "mcp.client",
    "Store": "journal.store",
    "StoreUnavailable": "vocabulary.errors",
    "SuspendedRun": "journal.run",
    "TextBlock": "vocabulary.blocks",
    "ToolCall": "vocabulary.calls",
    "ToolCalls": "facade.tools.xml_parser",
    "ToolChunk": "vocabulary.call_events",
    "ToolCompleted": "vocabulary.call_events",
    "ToolEvent": "vocabulary.call_events",
    "ToolFunction": "facade.toolkits.registered",
    "ToolGroup": "catalogue.groups",
    "ToolParameter": "definition.parameters",
    "ToolPermission": "facade.tools.base_tool",
    "ToolPromptGenerator": "facade.tools.xml_parser",
    "ToolRegistry": "facade.registry",
    "ToolResponse": "vocabulary.response",
    "ToolResult": "vocabulary.results",
    "ToolServer": "gateway.tool_server",
    "ToolSpec": "facade.tools.tool_spec",
    "ToolStarted": "vocabulary.call_events",
    "ToolUseBlock": "vocabulary.blocks",
    "Toolkit": "facade.toolkits.toolkit",
    "ToolwireError": "vocabulary.errors",
    "Turn": "session.turn",
    "UpdateArtifactTool": "facade.built_in.artifact_tools",
    "WebFetchTool": "facade.built_in.web_tools",
    "WebSearchTool": "facade.built_in.web_search_tool",
    "XMLToolCallParser": "facade.tools.xml_parser",
    "built_in_tools": "facade.built_in.box",
    "create_artifact_tools": "facade.built_in.artifact_tools",
    "delete_file": "facade.built_in.file_tools",
    "edit_file": "facade.built_in.file_tools",
    "execute_python_code": "facade.built_in.execute_python_code",
    "insert_text_file": "facade.built_in.raw_files",
    "list_directory": "facade.built_in.file_tools",
    "load_policy": "permission.policy_file",
    "make_subagent_tool": "agent.team",
    "middleware": "",
    "parse_tool_calls": "facade.tools.xml_parser",
    "protocols": "",
    "read_text_file": "facade.built_in.file_tools",
    "reg_toolspec": "facade.tools.reg_toolspec",
    "tool": "facade.tools.function_tool",
    "trace_toolkit": "facade.toolkits.trace_toolkit",
    "view_text_file": "facade.built_in.raw_files",
    "workspace_tools": "facade.built_in.file_tools",
    "write_file": "facade.built_in.file_tools",
    "write_text_file": "facade.built_in.raw_files",
}

_MOVED = {
    "ConsoleApprover": "approvals",
    "Decider": "approvals",
    "Diagnosis": "doctor",
    "LogCheck": "log",
    "LogFilter": "log",
    "LogRow": "log",
    "check_edit": "approvals",
    "console_approver": "approvals",
    "decisions_to_json": "approvals",
    "diagnose": "doctor",
    "later": "approvals",
    "read_decisions": "approvals",
    "read_edit": "approvals",
    "read_suspended": "approvals",
    "render_request": "approvals",
    "rule_for": "approvals",
    "suspended_to_json": "approvals",
    "visible_text": "approvals",
}
"""Names with a module of their own. The root finds them too, with a DeprecationWarning, until 0.3."""

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name in _MOVED:
        return _moved(name)
    if name == "__version__":
        from importlib.metadata import version

        return version("toolwire")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolwire' has no attribute {name!r}")
    if not home:
        found: object = import_module(f"toolwire.{name}")
    else:
        module, _, other = home.partition(":")
        found = getattr(import_module(f"toolwire.{module}"), other or name)
    globals()[name] = found
    return found


def _moved(name: str) -> object:
    import warnings

    home = f"toolwire.{_MOVED[name]}"
    # The frame above this one is __getattr__, and the one above that is the user's.
    warnings.warn(f"toolwire.{name} is now {home}.{name}", DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
