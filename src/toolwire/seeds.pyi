from toolwire.catalogue.groups import ToolGroup as ToolGroup
from toolwire.facade.toolkits.registered import RegisteredToolFunction as RegisteredToolFunction
from toolwire.facade.toolkits.registered import ToolFunction as ToolFunction
from toolwire.facade.toolkits.toolkit import AgentToolkit as AgentToolkit
from toolwire.facade.toolkits.trace_toolkit import trace_toolkit as trace_toolkit
from toolwire.facade.tools.base_tool import ToolPermission as ToolPermission
from toolwire.facade.tools.xml_parser import ToolCalls as ToolCalls
from toolwire.facade.tools.xml_parser import ToolPromptGenerator as ToolPromptGenerator
from toolwire.facade.tools.xml_parser import XMLToolCallParser as XMLToolCallParser
from toolwire.facade.tools.xml_parser import parse_tool_calls as parse_tool_calls
from toolwire.mcp.client import MCPClientBase as MCPClientBase
from toolwire.mcp.client import StatefulClientBase as StatefulClientBase
from toolwire.mcp.tool_function import MCPToolFunction as MCPToolFunction
from toolwire.vocabulary.blocks import ToolUseBlock as ToolUseBlock

__all__: list[str]
