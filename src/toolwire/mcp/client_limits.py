"""The limits of a connection to an MCP server."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TypedDict

from toolwire.vocabulary.errors import ConfigurationError

CONNECT_S = 30.0
"""Seconds to start a server, agree on a protocol and list the tools. `npx` may download a package first."""

CALL_S = 60.0
"""Seconds without an answer or progress after which a call is given up, as in the SDKs of MCP."""

CALL_MAX_S = 600.0
"""Seconds of a call in all. Progress renews `CALL_S`, but not beyond this."""

CALL_LIMIT = 64
"""Calls under way on one connection. More is refused, so that one server cannot take all memory."""

MESSAGE_BYTES = 16 * 1024 * 1024
"""Bytes of one message of a server: a picture of 12 MB in Base64."""

PAGES = 100
"""Pages of a list of tools. A server whose list never ends is cut off there."""

TOOLS = 2_000
"""Tools of one server. The tool search is measured with as many."""

BLOCKS = 2_000
"""Blocks of one result. Some servers make a block of each item of a list, and no model reads more of them."""

LOG_LINES_PER_S = 100
"""Lines a second of a server's log, its stderr included. The rest is counted."""

ROUND_TRIPS = 10
"""Requests of one call whose server asks for input in between. The SDKs of MCP give up after as many."""

LEG_S = 0.25
"""Seconds before a request is repeated for a server that gave a state and no question: it is at work meanwhile."""

TASK_POLL_S, TASK_POLL_MIN_S, TASK_POLL_MAX_S = 1.0, 0.1, 30.0
"""Seconds between two looks at a task of a server that names none, and the least and most that are taken from one."""

TASK_ID_CHARACTERS = 1_024
"""Characters of a task's id of a server. It is the value of a header."""

CANCEL_S = 2.0
"""Seconds for telling a server that its task is not wanted any more."""

QUESTIONS = 10
"""Questions of a server in one call, in each protocol. Further ones are declined: no person reads more."""

FORM_FIELDS = 50
"""Fields of one form of a server. No person fills in more in the middle of a call."""

FORM_CHARACTERS = 65_536
"""Characters of the schema of one form as JSON: 50 fields with a choice of countries each."""

STATE_CHARACTERS = 65_536
"""Characters of the state that a server gives back to itself. A store keeps it while a person is asked."""

RELIST_S = 1.0
"""Seconds between the news that a list of tools changed and reading it. All news of that time count as one."""

CLOSE_GRACE_S = 2.0
"""Seconds between the steps of ending a server's process: closed stdin, SIGTERM, SIGKILL."""

OFFERS_S = 10.0
"""Seconds for a list of resources or prompts, and for a subscription, while a client waits. It waits for 60 or less."""

SUBSCRIPTIONS = 1_000
"""Resources of one server whose changes are wanted at a time. A client that shows files wants some hundreds."""

OFFER_CHARACTERS = 65_536
"""Characters of one resource, template or prompt of a list as JSON, its icons included."""

BACKOFF_S, BACKOFF_MAX_S, BACKOFF_GROWTH = 0.5, 30.0, 1.5
"""Seconds before the first and the longest wait for a new connection, and the growth. With this growth a server that
was down for five seconds is found again within two. A stream of events is opened again after the first wait or later,
whatever wait its server names.
"""

STABLE_S = 5.0
"""Seconds after which a connection counts as good: the next loss begins a new series of attempts."""

BREAKER = 5
"""Attempts that fail one after the other before calls no longer wait for a connection."""

LOGGED_LOSSES = 10
"""Connections that are lost soon after they were made, one after the other, each with a line in the log. Later ones and
failed attempts have one if their reason is new."""


class McpLimitOptions(TypedDict, total=False):
    """The limits that `MCPClient` takes as keywords; see `ClientLimits`."""

    connect_s: float
    call_s: float
    call_max_s: float
    call_limit: int
    message_bytes: int
    pages: int
    tools: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The limits of one connection.

    Attributes:
        connect_s: Seconds to connect and to list the tools.
        call_s: Seconds of a call without an answer or progress.
        call_max_s: Seconds of a call in all.
        call_limit: Calls under way at a time.
        message_bytes: Bytes of one message of the server.
        pages: Pages of the list of tools.
        tools: Tools of the server.

    Raises:
        ConfigurationError: A limit is not a finite number above 0.
    """

    connect_s: float = CONNECT_S
    call_s: float = CALL_S
    call_max_s: float = CALL_MAX_S
    call_limit: int = CALL_LIMIT
    message_bytes: int = MESSAGE_BYTES
    pages: int = PAGES
    tools: int = TOOLS

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value < math.inf:
                raise ConfigurationError(f"{field.name}={value!r:.80}: give a number above 0")
