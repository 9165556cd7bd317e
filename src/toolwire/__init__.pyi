from toolwire import middleware as middleware
from toolwire import protocols as protocols
from toolwire.agent.agent import Agent as Agent
from toolwire.agent.result import Budget as Budget
from toolwire.agent.team import AgentTeam as AgentTeam
from toolwire.definition.parameters import ToolParameter as ToolParameter
from toolwire.facade.registry import ToolRegistry as ToolRegistry
from toolwire.facade.toolkits.toolkit import Toolkit as Toolkit
from toolwire.facade.tools.base_tool import BaseTool as BaseTool
from toolwire.facade.tools.function_tool import tool as tool
from toolwire.facade.tools.reg_toolspec import reg_toolspec as reg_toolspec
from toolwire.facade.tools.tool_spec import ToolSpec as ToolSpec
from toolwire.gateway.client_profiles import ClientProfiles as ClientProfiles
from toolwire.gateway.tool_server import ToolServer as ToolServer
from toolwire.journal.store import Store as Store
from toolwire.mcp.client import MCPClient as MCPClient
from toolwire.mcp.oauth.authorization import McpCredentials as McpCredentials
from toolwire.mcp.oauth.authorization import McpLogin as McpLogin
from toolwire.permission.approval import ApprovalRequest as ApprovalRequest
from toolwire.permission.approval import Decision as Decision
from toolwire.permission.approval import DecisionRefused as DecisionRefused
from toolwire.permission.condition import Condition as Condition
from toolwire.permission.policy import Policy as Policy
from toolwire.permission.policy import Rule as Rule
from toolwire.permission.policy_file import load_policy as load_policy
from toolwire.sandbox.limits import Limits as Limits
from toolwire.sandbox.report import ProgramResult as ProgramResult
from toolwire.seeds import *  # noqa: F403 - these names stand there alone
from toolwire.session.session import Session as Session
from toolwire.session.turn import Turn as Turn
from toolwire.tools import *  # noqa: F403 - these names stand there alone
from toolwire.vocabulary.blocks import AudioBlock as AudioBlock
from toolwire.vocabulary.blocks import ImageBlock as ImageBlock
from toolwire.vocabulary.blocks import TextBlock as TextBlock
from toolwire.vocabulary.call_events import ToolEvent as ToolEvent
from toolwire.vocabulary.calls import Caller as Caller
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
from toolwire.vocabulary.questions import InputRequired as InputRequired
from toolwire.vocabulary.questions import Question as Question
from toolwire.vocabulary.questions import QuestionDeclined as QuestionDeclined
from toolwire.vocabulary.response import ToolResponse as ToolResponse
from toolwire.vocabulary.results import CallFailed as CallFailed
from toolwire.vocabulary.results import ToolResult as ToolResult

__all__: list[str]
__version__: str
_MOVED: dict[str, str]
