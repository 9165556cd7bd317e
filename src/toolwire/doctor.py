"""Reports what holds a program on this machine, and which MCP servers answer, as the commands `doctor` do.

`log_in_mcp` is `toolwire mcp login`.
"""

from toolwire.mcp.diagnosis import McpServerDiagnosis, diagnose_mcp, log_in_mcp
from toolwire.sandbox.isolation import Diagnosis, diagnose

__all__ = [
    "Diagnosis",
    "McpServerDiagnosis",
    "diagnose",
    "diagnose_mcp",
    "log_in_mcp",
]
