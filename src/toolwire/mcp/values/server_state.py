"""The state of one MCP server of a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerState:
    """One server of a configuration, at this moment.

    Attributes:
        server: Its name.
        state: `on`: its tools are here, and calls can be sent. `starting`: the first attempt to connect is under way.
            `off`: it is not there; it is tried again, unless its entry is wrong. `disabled`: its entry says so.
        reason: Why it is off, and what to do; empty otherwise.
        is_required: True if a gateway is not ready without it.
        is_former: True if it goes on with its former entry, because the present one cannot be used.
    """

    server: str
    state: Literal["on", "starting", "off", "disabled"]
    reason: str = ""
    is_required: bool = False
    is_former: bool = False
