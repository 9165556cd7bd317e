"""What pages and operators read of a store: runs, their replies and calls, and requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import get_args

from sqlalchemy import Connection, select

from toolwire.journal.conversation_info import check_name
from toolwire.journal.database.size import store_bytes
from toolwire.journal.database.tables import RUNS
from toolwire.journal.kept_reply import reply_of
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.forms import read_form, read_run
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.page import Page, check_limit, check_moment, check_request_id, check_run_id, check_text
from toolwire.journal.reading.call_list import list_calls
from toolwire.journal.reading.request_list import count_waiting, list_pending, list_requests
from toolwire.journal.reading.run_list import RunFilter, list_runs, read_run_info
from toolwire.journal.reading.selecting import check_caller, check_choice, check_flag
from toolwire.journal.run import RecordedCall, RequestInfo, RequestState, RunInfo, RunStatus, Waiting
from toolwire.journal.twins import async_twin
from toolwire.permission.approval import ApprovalRequest, Decision, DecisionRefused
from toolwire.vocabulary.calls import Caller, Reply

RUNS_LISTED = 100
"""Default number of runs in a list: more than a person looks through."""

REQUESTS_LISTED = 100
"""Default number of requests in a list of all runs, for the same reason."""


class StoreReading(ABC):
    """The part of a `Store` that lists runs, calls and requests. Nothing here takes a lease or writes.

    A list is a `Page`: `more` says whether its limit cut it, and `cursor` is the `after` of the next page.
    """

    @property
    @abstractmethod
    def _database(self) -> Database: ...

    # -- runs -------------------------------------------------------------------------------------------------------

    def runs(
        self,
        *,
        status: RunStatus | None = None,
        conversation: str | None = None,
        caller: Caller | None = None,
        agent: str | None = None,
        tool: str | None = None,
        is_held: bool | None = None,
        since: float | None = None,
        before: float | None = None,
        limit: int = RUNS_LISTED,
        after: str | None = None,
    ) -> Page[RunInfo]:
        """Returns runs, newest first.

        A turn that was killed or cancelled is a run of its conversation with the status `running` and not `is_held`.
        `Session.resume` continues it. A run whose record was damaged is listed with `damaged`.

        `caller` selects the runs of its principal and tenant, and only those of its agent if it names one. `agent`
        selects the runs of this agent, whatever its principal. `tool` selects runs in whose reply the model called this
        tool. `is_held` selects runs that a process holds which may be alive, or the others.

        `since` selects runs created at that time or later, and `before` runs created earlier, both in seconds since the
        epoch. A filter that few runs match reads all runs: give `since` as well.

        Raises:
            ConfigurationError: `limit` is not a whole number from 1, `after` is not the cursor of a page of runs, or a
                filter has a value that it cannot have.
        """
        check_limit(limit)
        check_moment("since", since)
        check_moment("before", before)
        check_choice("runs", "status", status, get_args(RunStatus))
        check_flag("runs", "is_held", is_held)
        check_caller("runs", caller)
        check_text("runs", "agent", agent, "'support'")
        check_text("runs", "tool", tool, "'pay'")
        name = None if conversation is None else check_name(conversation)
        wanted = RunFilter(
            status=status,
            conversation=name,
            caller=caller,
            agent=agent,
            tool=tool,
            is_held=is_held,
            since=since,
            before=before,
        )
        database = self._database
        return database.read(
            lambda connection: list_runs(
                connection, database.sealer, wanted, database.clock(), limit=limit, after=after
            ),
            is_one_state=True,
        )

    aruns = async_twin(runs)

    def run(self, run_id: str) -> RunInfo:
        """Returns one run.

        Raises:
            ConfigurationError: `run_id` is not text.
            DecisionRefused: `unknown_run`, or `bad_mac` if its record was changed in the database.
        """
        check_run_id("run", run_id)
        database = self._database
        return database.read(lambda connection: read_run_info(connection, database.sealer, run_id, database.clock()))

    arun = async_twin(run)

    def reply(self, run_id: str) -> Reply:
        """Returns the reply of the model from which a run started, without a look at what the run has done since.

        `thought` has the model's reasoning, `problems` what was repaired in the reply, and `message` its source: the
        text as the model wrote it, or the provider's message.

        Raises:
            ConfigurationError: `run_id` is not text.
            DecisionRefused: `unknown_run`, or `bad_mac` if its record was changed in the database.
        """
        check_run_id("reply", run_id)
        database = self._database

        def read(connection: Connection) -> bytes | None:
            return connection.execute(select(RUNS.c.start).where(RUNS.c.run_id == run_id)).scalar_one_or_none()

        sealed = database.read(read)
        if sealed is None:
            raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
        opened = database.sealer.open(sealed, "runs", run_id, "start")
        return read_form(opened, lambda form: reply_of(read_run(form).reply))

    areply = async_twin(reply)

    def calls(
        self, run_id: str, *, limit: int | None = None, after: str | None = None, parent: str | None = None
    ) -> Page[RecordedCall]:
        """Returns the calls of a run in the order of their starts, with those that wait for a person.

        A call that did not begin stands where it ended, or where a person was asked. `limit` is the number of calls;
        None: all. `parent` selects the calls that this call made, and with an empty text those of the model.

        Raises:
            ConfigurationError: `limit` is not a whole number from 1, `after` is not the cursor of a page of calls, or
                `run_id` or `parent` is not text.
            DecisionRefused: `unknown_run`, or `bad_mac` if a record was changed in the database.
        """
        if limit is not None:
            check_limit(limit)
        check_run_id("calls", run_id)
        check_text("calls", "parent", parent, "call.id")
        database = self._database
        return database.read(
            lambda connection: list_calls(
                connection, database.sealer, run_id, database.clock(), limit=limit, after=after, parent=parent
            ),
            is_one_state=True,
        )

    acalls = async_twin(calls)

    # -- requests ---------------------------------------------------------------------------------------------------

    def pending(
        self,
        run_id: str | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        caller: Caller | None = None,
        tool: str | None = None,
    ) -> Page[ApprovalRequest]:
        """Returns the requests that wait for a person, oldest first; None selects all runs.

        A request whose record was damaged is listed with `damaged`, and cannot be decided.

        `limit` is the number of requests. None: 100, or all if a run is given. `caller` selects the requests for its
        principal and tenant, and only those of its agent if it names one. `tool` selects the calls of this tool.

        Raises:
            ConfigurationError: `limit` is not a whole number from 1, `after` is not the cursor of a page of requests,
                `caller` is not a `Caller`, or `run_id` or `tool` is not text.
        """
        check_run_id("pending", run_id, is_needed=False)
        check_caller("pending", caller)
        check_text("pending", "tool", tool, "'pay'")
        database, count = self._database, _request_limit(run_id, limit)
        return database.read(
            lambda connection: list_pending(
                connection,
                database.sealer,
                run_id,
                database.clock(),
                limit=count,
                after=after,
                caller=caller,
                tool=tool,
            ),
            is_one_state=True,
        )

    apending = async_twin(pending)

    def waiting(self) -> Waiting:
        """Returns how many requests wait for a person, and since when the oldest does. It opens none of them."""
        database = self._database
        return database.read(lambda connection: count_waiting(connection, database.clock()))

    awaiting = async_twin(waiting)

    def requests(
        self,
        run_id: str | None = None,
        *,
        state: RequestState | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Page[RequestInfo]:
        """Returns requests with their states and decisions, newest first: also those that nobody can decide any more.

        None selects all runs, and all states. One whose record was damaged is listed with `damaged`. `limit` is the
        number of requests. None: 100, or all if a run is given.

        Raises:
            ConfigurationError: The state is unknown, `limit` is not a whole number from 1, `after` is not the cursor
                of a page of requests, or `run_id` is not text.
        """
        check_run_id("requests", run_id, is_needed=False)
        check_choice("requests", "state", state, get_args(RequestState))
        database, count = self._database, _request_limit(run_id, limit)
        return database.read(
            lambda connection: list_requests(
                connection, database.sealer, run_id, database.clock(), state=state, limit=count, after=after
            ),
            is_one_state=True,
        )

    arequests = async_twin(requests)

    def request(self, request_id: str) -> tuple[ApprovalRequest, Decision | None]:
        """Returns a request, with the decision that counts if it has one.

        Raises:
            ConfigurationError: `request_id` is not text.
            DecisionRefused: `unknown_request`, or `bad_mac` if its record was changed in the database.
        """
        check_request_id("request", request_id)
        database = self._database
        found = database.read(
            lambda connection: approvals.request_and_decision(connection, database.sealer, request_id)
        )
        if found is None:
            raise DecisionRefused("unknown_request", f"there is no request {request_id!r}", request_id=request_id)
        return found

    arequest = async_twin(request)

    # -- the store --------------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Returns the bytes of the store on the disk: its files, or its tables with their indexes. It reads no row."""
        database = self._database
        return database.read(lambda connection: store_bytes(connection, database.location))

    asize = async_twin(size)


def _request_limit(run_id: str | None, limit: int | None) -> int | None:
    """Returns the number of requests to list; None: all."""
    if limit is not None:
        check_limit(limit)
        return limit
    return REQUESTS_LISTED if run_id is None else None
