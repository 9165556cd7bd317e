"""One connection to a server, from its opening to its end."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

import anyio
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types import Tool as McpTool

from mcp import Client
from toolwire.mcp.asked.client_features import Given, Wanted, pass_on, too_many
from toolwire.mcp.asked.server_questions import BY_TOOLWIRE, answer_of, question_of
from toolwire.mcp.offered.list_changes import ListChanges, ServerNews
from toolwire.mcp.offered.listing import OfferKind
from toolwire.mcp.sending import SENDING, Sending
from toolwire.mcp.server_log import ServerLog
from toolwire.vocabulary.context import Interrupted
from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.questions import QuestionDeclined


class OpenConnection:
    """One connection. Its fields are used on the loop of its owner alone."""

    def __init__(self, server: str, call_limit: int, log: ServerLog, news: ServerNews) -> None:
        """`server` is its name."""
        self._server = server
        self.client: Client | None = None
        self.tools: tuple[McpTool, ...] = ()
        self.offers: dict[OfferKind, tuple[Any, ...]] = {}
        """The other lists that were read and have not changed since."""
        self.since = 0.0
        self.opening = anyio.CancelScope()
        """Ends the attempt to connect."""
        self.changes = ListChanges(news)
        self.error = ""
        self.last_line = ""
        """The last line on the stderr of its process."""
        self.is_refused = False
        """True if the server refused this client."""
        self.under_way: set[Sending] = set()
        """The calls that were sent and not answered."""
        self.ended = anyio.Event()
        """Set when it takes no more calls. Those under way may still be answered."""
        self.is_idle = anyio.Event()
        """Set when it has ended and no call is under way."""
        self._log = log
        # Each call may wait for a person in a thread.
        self._threads = anyio.CapacityLimiter(call_limit)

    def end(self, reason: str = "", last_line: str = "") -> None:
        """Ends it for new calls. A reason counts if none was known."""
        self.error, self.last_line = self.error or reason, self.last_line or last_line
        self.ended.set()
        if not self.under_way:
            self.is_idle.set()

    async def answer_question(self, context: object, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG002
        """Answers a request of the handshake revisions, by which a server asks while a call waits."""
        sending, log = self.sending_of_message(), self._log
        if sending is None:
            log.warning(f"its question was declined: {len(self.under_way)} calls are under way, and it names none")
            return BY_TOOLWIRE
        if sending.ask is None:
            log.warning("its question was declined: this call has no person")
            return BY_TOOLWIRE
        sending.questions += 1
        question = question_of(params, log, number=sending.questions)
        if question is None:
            return BY_TOOLWIRE
        try:
            with sending.asking():
                if sending.listener is not None and sending.listener.can_ask:
                    said = await asyncio.wrap_future(sending.listener.ask(self._server, question))
                    return ElicitResult(action="cancel") if said is None else answer_of(said)
                ask = partial(sending.ask, question)
                answer = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._threads)
            return answer_of(answer)
        except ToolwireError as declined:
            log.warning(f"its question was declined: {declined}")
            return answer_of(declined) if isinstance(declined, QuestionDeclined) else BY_TOOLWIRE
        except Interrupted:
            return ElicitResult(action="cancel")

    async def answer_sampling(
        self,
        context: object,  # noqa: ARG002
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | ErrorData:
        """Answers a request for the model of the client whose call is under way."""
        return cast("CreateMessageResult | ErrorData", await self._pass_on(CreateMessageRequest(params=params)))

    async def answer_roots(self, context: object) -> ListRootsResult | ErrorData:  # noqa: ARG002
        """Answers a request for the roots of the client whose call is under way."""
        return cast("ListRootsResult | ErrorData", await self._pass_on(ListRootsRequest()))

    async def _pass_on(self, wanted: Wanted) -> Given | ErrorData:
        sending = self.sending_of_message()
        if sending is None or sending.listener is None:
            self._log.warning(f"{wanted.method} was refused: it belongs to no call of one client")
            return ErrorData(code=INVALID_REQUEST, message=f"{wanted.method}: no call of one client is under way")
        sending.questions += 1
        with sending.asking():
            return too_many(sending.questions) or await pass_on(sending.listener, self._server, wanted)

    def sending_of_message(self) -> Sending | None:
        """Returns the call to which the server's message belongs: that of the stream which brought it, or the only one.

        None if it cannot be told. It is never given to the client of another call.
        """
        sending = SENDING.get()
        if sending in self.under_way:
            return sending
        return next(iter(self.under_way)) if len(self.under_way) == 1 else None
