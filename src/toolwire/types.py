"""Types that public signatures name, for annotations in your own code.

You need not create these objects yourself. Each name is loaded when it is first used.
"""

from importlib import import_module

# typing costs 20 ms; type checkers take this name as true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from toolwire.agent.agent import AgentConfig as AgentConfig
    from toolwire.agent.agent_options import AgentOptions as AgentOptions
    from toolwire.agent.result import Stop as Stop
    from toolwire.agent.shortening import Shorten as Shorten
    from toolwire.agent.team import SubagentTool as SubagentTool
    from toolwire.catalogue.entry import Middleware as Middleware
    from toolwire.catalogue.selection import Visible as Visible
    from toolwire.definition.author_options import FunctionOptions as FunctionOptions
    from toolwire.definition.author_options import McpOptions as McpOptions
    from toolwire.definition.author_options import SchemaOptions as SchemaOptions
    from toolwire.definition.declared import PublishedOptions as PublishedOptions
    from toolwire.definition.tool import Permission as Permission
    from toolwire.definition.tool import Tool as Tool
    from toolwire.facade.built_in.background import BackgroundCall as BackgroundCall
    from toolwire.facade.built_in.background import BackgroundCalls as BackgroundCalls
    from toolwire.facade.built_in.file_tools import FileEdit as FileEdit
    from toolwire.facade.named_tools import NamedTools as NamedTools
    from toolwire.facade.policy_sources import PolicySource as PolicySource
    from toolwire.facade.toolkits.tool_stream import ToolStream as ToolStream
    from toolwire.facade.toolkits.trace_toolkit import TracedStream as TracedStream
    from toolwire.files.disk import Disk as Disk
    from toolwire.files.disk import FileInfo as FileInfo
    from toolwire.files.paths import FilePath as FilePath
    from toolwire.files.service import FileHandle as FileHandle
    from toolwire.files.service import FilePage as FilePage
    from toolwire.files.service import FileWritten as FileWritten
    from toolwire.gateway.server_limits import ServerLimitOptions as ServerLimitOptions
    from toolwire.gateway.server_limits import ServerLimits as ServerLimits
    from toolwire.journal.artifacts.artifact import Artifact as Artifact
    from toolwire.journal.artifacts.artifact import ArtifactVersion as ArtifactVersion
    from toolwire.journal.conversation_info import ConversationInfo as ConversationInfo
    from toolwire.journal.conversation_info import Document as Document
    from toolwire.journal.ledger.conversation_leases import ConversationLease as ConversationLease
    from toolwire.journal.ledger.run_ledger import RunLedger as RunLedger
    from toolwire.journal.log.memory_log import ExecutionLog as ExecutionLog
    from toolwire.journal.log.memory_log import LogEntry as LogEntry
    from toolwire.journal.run import RunInfo as RunInfo
    from toolwire.journal.run import RunStart as RunStart
    from toolwire.journal.run import RunStatus as RunStatus
    from toolwire.mcp.client_limits import McpLimitOptions as McpLimitOptions
    from toolwire.mcp.config import McpServerProblem as McpServerProblem
    from toolwire.mcp.tool_function import CallFuture as CallFuture
    from toolwire.permission.approval import Approver as Approver
    from toolwire.permission.approval import RefusalCode as RefusalCode
    from toolwire.permission.check import Described as Described
    from toolwire.permission.check import RuleProblem as RuleProblem
    from toolwire.permission.condition import Pattern as Pattern
    from toolwire.permission.explain import Explanation as Explanation
    from toolwire.permission.explain import RuleOutcome as RuleOutcome
    from toolwire.permission.policy import Verdict as Verdict
    from toolwire.permission.rule import Subject as Subject
    from toolwire.protocols.attp.prompt import StubStyle as StubStyle
    from toolwire.protocols.base import Language as Language
    from toolwire.protocols.base import Thought as Thought
    from toolwire.protocols.user_prompt import PromptContent as PromptContent
    from toolwire.protocols.xml.element import CallTag as CallTag
    from toolwire.runtime.done import Done as Done
    from toolwire.sandbox.answers import Recorded as Recorded
    from toolwire.sandbox.answers import Unanswered as Unanswered
    from toolwire.sandbox.isolation import Layer as Layer
    from toolwire.sandbox.report import Isolation as Isolation
    from toolwire.sandbox.report import IsolationLevel as IsolationLevel
    from toolwire.sandbox.report import MinIsolation as MinIsolation
    from toolwire.sandbox.report import ProgramCallRecord as ProgramCallRecord
    from toolwire.sandbox.report import ProgramError as ProgramError
    from toolwire.sandbox.report import ProgramStatus as ProgramStatus
    from toolwire.session.resume import RunStore as RunStore
    from toolwire.session.resume import Standing as Standing
    from toolwire.session.suspended import Suspended as Suspended
    from toolwire.session.turn import Message as Message
    from toolwire.session.wire import Decisions as Decisions
    from toolwire.session.wire import GivenDecisions as GivenDecisions
    from toolwire.vocabulary.blocks import Annotations as Annotations
    from toolwire.vocabulary.blocks import Base64Source as Base64Source
    from toolwire.vocabulary.blocks import BlobResource as BlobResource
    from toolwire.vocabulary.blocks import ContentBlock as ContentBlock
    from toolwire.vocabulary.blocks import ResourceBlock as ResourceBlock
    from toolwire.vocabulary.blocks import ResourceLinkBlock as ResourceLinkBlock
    from toolwire.vocabulary.blocks import TextResource as TextResource
    from toolwire.vocabulary.blocks import UrlSource as UrlSource
    from toolwire.vocabulary.effects import Effect as Effect
    from toolwire.vocabulary.effects import Effects as Effects
    from toolwire.vocabulary.effects import EffectsOf as EffectsOf
    from toolwire.vocabulary.effects import Idempotency as Idempotency
    from toolwire.vocabulary.effects import Label as Label
    from toolwire.vocabulary.effects import Reconcile as Reconcile
    from toolwire.vocabulary.effects import Seen as Seen
    from toolwire.vocabulary.failures import FailureKind as FailureKind
    from toolwire.vocabulary.kept_text import KeptText as KeptText
    from toolwire.vocabulary.kept_text import Spill as Spill
    from toolwire.vocabulary.texts.variables import VariablesChange as VariablesChange

_HOMES = {
    "AgentConfig": "agent.agent",
    "AgentOptions": "agent.agent_options",
    "Annotations": "vocabulary.blocks",
    "Approver": "permission.approval",
    "Artifact": "journal.artifacts.artifact",
    "ArtifactVersion": "journal.artifacts.artifact",
    "BackgroundCall": "facade.built_in.background",
    "BackgroundCalls": "facade.built_in.background",
    "Base64Source": "vocabulary.blocks",
    "BlobResource": "vocabulary.blocks",
    "CallFuture": "mcp.tool_function",
    "CallTag": "protocols.xml.element",
    "ContentBlock": "vocabulary.blocks",
    "ConversationInfo": "journal.conversation_info",
    "ConversationLease": "journal.ledger.conversation_leases",
    "Decisions": "session.wire",
    "Described": "permission.check",
    "Disk": "files.disk",
    "Document": "journal.conversation_info",
    "Done": "runtime.done",
    "Effect": "vocabulary.effects",
    "Effects": "vocabulary.effects",
    "EffectsOf": "vocabulary.effects",
    "ExecutionLog": "journal.log.memory_log",
    "Explanation": "permission.explain",
    "FailureKind": "vocabulary.failures",
    "FileEdit": "facade.built_in.file_tools",
    "FileHandle": "files.service",
    "FileInfo": "files.disk",
    "FilePage": "files.service",
    "FilePath": "files.paths",
    "FileWritten": "files.service",
    "FunctionOptions": "definition.author_options",
    "GivenDecisions": "session.wire",
    "Idempotency": "vocabulary.effects",
    "Isolation": "sandbox.report",
    "IsolationLevel": "sandbox.report",
    "KeptText": "vocabulary.kept_text",
    "Label": "vocabulary.effects",
    "Language": "protocols.base",
    "Layer": "sandbox.isolation",
    "LogEntry": "journal.log.memory_log",
    "McpLimitOptions": "mcp.client_limits",
    "McpOptions": "definition.author_options",
    "McpServerProblem": "mcp.config",
    "Message": "session.turn",
    "Middleware": "catalogue.entry",
    "MinIsolation": "sandbox.report",
    "NamedTools": "facade.named_tools",
    "Pattern": "permission.condition",
    "Permission": "definition.tool",
    "PolicySource": "facade.policy_sources",
    "ProgramCallRecord": "sandbox.report",
    "ProgramError": "sandbox.report",
    "ProgramStatus": "sandbox.report",
    "PromptContent": "protocols.user_prompt",
    "PublishedOptions": "definition.declared",
    "Reconcile": "vocabulary.effects",
    "Recorded": "sandbox.answers",
    "RefusalCode": "permission.approval",
    "ResourceBlock": "vocabulary.blocks",
    "ResourceLinkBlock": "vocabulary.blocks",
    "RuleOutcome": "permission.explain",
    "RuleProblem": "permission.check",
    "RunInfo": "journal.run",
    "RunLedger": "journal.ledger.run_ledger",
    "RunStart": "journal.run",
    "RunStatus": "journal.run",
    "RunStore": "session.resume",
    "SchemaOptions": "definition.author_options",
    "Seen": "vocabulary.effects",
    "ServerLimitOptions": "gateway.server_limits",
    "ServerLimits": "gateway.server_limits",
    "Shorten": "agent.shortening",
    "Spill": "vocabulary.kept_text",
    "Standing": "session.resume",
    "Stop": "agent.result",
    "StubStyle": "protocols.attp.prompt",
    "SubagentTool": "agent.team",
    "Subject": "permission.rule",
    "Suspended": "session.suspended",
    "TextResource": "vocabulary.blocks",
    "Thought": "protocols.base",
    "Tool": "definition.tool",
    "ToolStream": "facade.toolkits.tool_stream",
    "TracedStream": "facade.toolkits.trace_toolkit",
    "Unanswered": "sandbox.answers",
    "UrlSource": "vocabulary.blocks",
    "VariablesChange": "vocabulary.texts.variables",
    "Verdict": "permission.policy",
    "Visible": "catalogue.selection",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolwire.types' has no attribute {name!r}")
    found: object = getattr(import_module(f"toolwire.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
