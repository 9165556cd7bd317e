"""Calls that become tasks: what a client is told, across connections, processes and time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from mcp import Client
from tests.gateway.test_heard_calls import RULES, asking_client
from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import store as store
from tests.journal.conftest import url as url
from tests.patience import PATIENCE_S
from toolwire import CallContext, Decision, InputRequired, Question, Store, ToolRegistry, ToolServer
from toolwire import Caller as ToolCaller
from toolwire.mcp.values.task_values import TASKS_EXTENSION

SHORT_S = 0.05
"""Seconds after which a call of these tests becomes a task."""
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class AnyResult(types.Result):
    model_config = ConfigDict(extra="allow")


class TaskRequest(types.Request[Any, str]):
    name_param = "taskId"


class Tools:
    """Tools whose work a test holds up."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.paid = list[int]()
        self.registry = ToolRegistry()
        self.registry.register(self.work)
        self.registry.register(self.pay)
        self.registry.register(self.ask)
        self.registry.register(self.ask_two)
        self.registry.configure(policy=[{"tool": "pay", "effect": "confirm"}])
        self.cancelled = False

    async def work(self, context: CallContext) -> str:
        """Works."""
        await context.progress(1, 2, "half of it")
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"

    def pay(self, amount: int) -> str:
        """Pays."""
        self.paid.append(amount)
        return f"paid {amount}"

    async def ask(self, context: CallContext) -> Any:
        """Asks, and works then."""
        if "name" not in context.answers:
            return InputRequired({"name": Question("Who?", FORM)})
        await self.goes_on.wait()
        return f"Hello, {context.answers['name']['name']}"

    async def ask_two(self, context: CallContext) -> Any:
        """Works, and asks two questions then."""
        await self.goes_on.wait()
        if not context.answers:
            return InputRequired({name: Question("Who?", FORM) for name in ("one", "two")})
        return " ".join(said["name"] for said in context.answers.values())


class Caller:
    """A client that takes tasks, and asks for what it wants by the bare messages."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, /, _more: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        params = types.CallToolRequestParams(name=name, arguments=arguments, **(_more or {}))
        request = types.CallToolRequest(params=params)
        return await self._send(request)

    async def about(self, method: str, task: str, **more: Any) -> dict[str, Any]:
        return await self._send(TaskRequest(method=method, params={"taskId": task, **more}))

    async def ended(self, task: str) -> dict[str, Any]:
        return await self._look(task, {"working", "input_required"})

    async def until_not_working(self, task: str) -> dict[str, Any]:
        return await self._look(task, {"working"})

    async def until_asked_anew(self, task: str, known: set[str]) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            said = await self.about("tasks/get", task)
            while not said.get("inputRequests", {}).keys() - known:
                await asyncio.sleep(0.02)
                said = await self.about("tasks/get", task)
        return said

    async def _look(self, task: str, until_not: set[str]) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            said = await self.about("tasks/get", task)
            while said["status"] in until_not:
                await asyncio.sleep(0.02)
                said = await self.about("tasks/get", task)
        return said

    async def _send(self, request: Any) -> dict[str, Any]:
        said = await self._client.session.send_request(request, AnyResult)
        return said.model_dump(by_alias=True)


async def never(context: Any, params: Any) -> types.ErrorData:
    """Lets the client promise forms. These tests answer them by hand."""
    raise AssertionError


def client_of(server: ToolServer | str, *, shows_forms: bool = False, takes_tasks: bool = True) -> Client:
    return Client(
        server if isinstance(server, str) else server.in_memory(),
        extensions=[advertise(TASKS_EXTENSION)] if takes_tasks else [],
        elicitation_callback=never if shows_forms else None,
        mode="auto",
    )


def answer(said: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Returns the answers to all questions of a task."""
    return {name: {"action": "accept", "content": content} for name in said["inputRequests"]}


def text_of(said: dict[str, Any]) -> str:
    return said["result"]["content"][0]["text"]


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
def hasty(tools: Tools, store: Store) -> ToolServer:
    return ToolServer(tools.registry, "s", store=store, task_s=SHORT_S)


@pytest.fixture
def patient(tools: Tools, store: Store) -> ToolServer:
    return ToolServer(tools.registry, "s", store=store, task_s=PATIENCE_S)


async def test_a_long_call_becomes_a_task_that_tells_how_far_it_is(tools: Tools, hasty: ToolServer) -> None:
    async with client_of(hasty) as client:
        caller = Caller(client)
        made = await caller.call("work")
        assert (made["resultType"], made["status"]) == ("task", "working")
        assert made.keys() & {"result", "error", "inputRequests", "requestState"} == set()
        said = await caller.about("tasks/get", made["taskId"])
        assert (said["status"], said["statusMessage"], said["taskId"]) == ("working", "half of it", made["taskId"])
        tools.goes_on.set()
        ended = await caller.ended(made["taskId"])
    assert (ended["resultType"], ended["status"], text_of(ended)) == ("complete", "completed", "done")
    assert made["createdAt"] == said["createdAt"] == ended["createdAt"] <= ended["lastUpdatedAt"]
    assert isinstance(ended["ttlMs"], int)
    assert isinstance(ended["pollIntervalMs"], int)


async def test_a_short_call_and_a_client_without_the_extension_get_results(
    tools: Tools, hasty: ToolServer, patient: ToolServer
) -> None:
    tools.goes_on.set()
    async with client_of(patient) as client:
        assert client.server_capabilities.extensions == {TASKS_EXTENSION: {}}
        assert (await Caller(client).call("work"))["content"][0]["text"] == "done"
    tools.goes_on.clear()
    asyncio.get_running_loop().call_later(4 * SHORT_S, tools.goes_on.set)
    async with client_of(hasty, takes_tasks=False) as client:
        assert (await Caller(client).call("work"))["content"][0]["text"] == "done"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_client_that_has_not_declared_the_extension_is_told_so(hasty: ToolServer, method: str) -> None:
    async with client_of(hasty, takes_tasks=False) as client:
        with pytest.raises(MCPError) as refused:
            await Caller(client).about(method, "x", inputResponses={})
    assert refused.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    assert refused.value.error.data == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}


async def test_news_of_tasks_need_the_extension_too(hasty: ToolServer) -> None:
    params = {"notifications": {"taskIds": ["one"]}}
    request = types.Request[Any, str](method="subscriptions/listen", params=params)
    async with client_of(hasty, takes_tasks=False) as client:
        with pytest.raises(MCPError) as refused:
            await client.session.send_request(request, AnyResult)
    assert refused.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_without_a_store_there_are_no_tasks(tools: Tools) -> None:
    asyncio.get_running_loop().call_later(4 * SHORT_S, tools.goes_on.set)
    async with client_of(ToolServer(tools.registry, "s", task_s=SHORT_S)) as client:
        assert not client.server_capabilities.extensions
        assert (await Caller(client).call("work"))["content"][0]["text"] == "done"


async def test_a_call_that_an_operator_has_to_decide_on_is_a_task(
    tools: Tools, patient: ToolServer, store: Store
) -> None:
    async with client_of(patient) as client:
        caller = Caller(client)
        task = (await caller.call("pay", amount=5))["taskId"]
        said = await caller.about("tasks/get", task)
        (request,) = store.pending()
        assert said["status"] == "working"
        assert f"`toolwire approvals approve {request.id}`" in said["statusMessage"]
        store.decide(request.id, Decision(verdict="approve"))
        assert text_of(await caller.ended(task)) == "paid 5"
    assert tools.paid == [5]


async def test_a_person_at_the_client_decides_on_a_task(tools: Tools, patient: ToolServer) -> None:
    async with client_of(patient, shows_forms=True) as client:
        caller = Caller(client)
        task = (await caller.call("pay", amount=5))["taskId"]
        said = await caller.about("tasks/get", task)
        assert said["status"] == "input_required"
        (form,) = said["inputRequests"].values()
        assert (form["method"], "amount" in form["params"]["message"]) == ("elicitation/create", True)
        assert tools.paid == []
        await caller.about("tasks/update", task, inputResponses={"unknown": {"ignored": True}})
        assert (await caller.about("tasks/get", task))["status"] == "input_required"
        acknowledged = await caller.about("tasks/update", task, inputResponses=answer(said, {"decision": "once"}))
        assert acknowledged.keys() == {"resultType", "_meta"}
        assert text_of(await caller.ended(task)) == "paid 5"
        await caller.about("tasks/update", task, inputResponses=answer(said, {"decision": "once"}))
    assert tools.paid == [5]


async def test_questions_of_a_task_may_be_answered_one_after_the_other(tools: Tools, hasty: ToolServer) -> None:
    async with client_of(hasty, shows_forms=True) as client:
        caller = Caller(client)
        task = (await caller.call("ask_two"))["taskId"]
        tools.goes_on.set()
        said = await caller.until_not_working(task)
        one, other = said["inputRequests"]
        for name, left in ((one, [other]), (other, [])):
            given = {name: {"action": "accept", "content": {"name": name}}}
            await caller.about("tasks/update", task, inputResponses=given)
            said = await caller.about("tasks/get", task)
            assert [*said.get("inputRequests", ())] == left
        assert {*text_of(await caller.ended(task)).split()} == {one, other}


async def test_a_quick_question_is_asked_at_once_and_the_long_rest_is_a_task(
    tools: Tools, hasty: ToolServer, patient: ToolServer
) -> None:
    async with client_of(patient, shows_forms=True) as client:
        asked = await Caller(client).call("ask")
        assert (asked["resultType"], "taskId" in asked) == ("input_required", False)
    async with client_of(hasty, shows_forms=True) as client:
        caller = Caller(client)
        answers = {name: {"action": "accept", "content": {"name": "Ann"}} for name in asked["inputRequests"]}
        made = await caller.call("ask", _more={"input_responses": answers, "request_state": asked["requestState"]})
        assert (made["resultType"], "requestState" in made) == ("task", False)
        tools.goes_on.set()
        assert text_of(await caller.ended(made["taskId"])) == "Hello, Ann"


@pytest.mark.parametrize("name", ["work", "pay"])
async def test_a_task_that_is_cancelled_stays_so(tools: Tools, hasty: ToolServer, name: str) -> None:
    async with client_of(hasty, shows_forms=True) as client:
        caller = Caller(client)
        task = (await (caller.call("pay", amount=5) if name == "pay" else caller.call("work")))["taskId"]
        said = await (caller.about("tasks/get", task) if name == "work" else caller.until_not_working(task))
        for _ in range(2):
            assert (await caller.about("tasks/cancel", task)).keys() == {"resultType", "_meta"}
            assert (await caller.ended(task))["status"] == "cancelled"
        if name == "pay":
            await caller.about("tasks/update", task, inputResponses=answer(said, {"decision": "once"}))
        tools.goes_on.set()
        assert (await caller.ended(task))["status"] == "cancelled"
    assert tools.paid == []
    assert tools.cancelled == (name == "work")


async def test_a_task_that_has_ended_is_not_cancelled(tools: Tools, hasty: ToolServer) -> None:
    async with client_of(hasty) as client:
        caller = Caller(client)
        task = (await caller.call("work"))["taskId"]
        tools.goes_on.set()
        assert (await caller.ended(task))["status"] == "completed"
        await caller.about("tasks/cancel", task)
        assert (await caller.ended(task))["status"] == "completed"


async def test_a_task_is_that_of_its_principal_alone(tools: Tools, store: Store) -> None:
    def of(principal: str) -> ToolServer:
        return ToolServer(tools.registry, "s", store=store, task_s=SHORT_S, caller=ToolCaller(principal=principal))

    async with client_of(of("ann")) as ann, client_of(of("bob")) as bob:
        task = (await Caller(ann).call("pay", amount=5))["taskId"]
        run, proof = task.split(".")
        for who, given in ((bob, task), (ann, run), (ann, f"{run}."), (ann, f"{run}.{proof[:-1]}x"), (ann, "é")):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                with pytest.raises(MCPError) as refused:
                    await Caller(who).about(method, given, inputResponses={})
                assert refused.value.code == types.INVALID_PARAMS
        # The control.
        assert (await Caller(ann).about("tasks/get", task))["status"] == "working"


async def test_a_task_outlives_its_connection_and_its_server(
    tools: Tools, hasty: ToolServer, url: str, opened: Callable[[], Store]
) -> None:
    async with client_of(hasty) as client:
        working = (await Caller(client).call("work"))["taskId"]
        waiting = (await Caller(client).call("pay", amount=5))["taskId"]
    tools.goes_on.set()
    with Store.open(url) as other:
        again = ToolServer(tools.registry, "s", store=other, task_s=SHORT_S)
        async with client_of(again, shows_forms=True) as client:
            caller = Caller(client)
            assert text_of(await caller.ended(working)) == "done"
            said = await caller.until_not_working(waiting)
            await caller.about("tasks/update", waiting, inputResponses=answer(said, {"decision": "once"}))
            assert text_of(await caller.ended(waiting)) == "paid 5"
    assert tools.paid == [5]


SERVER = """
import sys
from tests.gateway.served_tools import new_registry
from toolwire import ToolServer
server = ToolServer(new_registry(), "s", store=sys.argv[1], task_s=0.05)
server.run_http(port=0, on_start=lambda url: print(url, flush=True))
"""


@contextmanager
def process_with(url: str) -> Generator[str]:
    """Serves from a process that is killed at the end. Yields its URL."""
    process = subprocess.Popen([sys.executable, "-c", SERVER, url], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


async def test_tasks_of_a_killed_process_go_on_in_the_next(tmp_path: Path, url: str) -> None:
    """What waited goes on. What was at work asks a person, because it may have run."""
    with process_with(url) as old:
        async with client_of(old) as client:
            waiting = (await Caller(client).call("pay", amount=5, record=str(tmp_path / "record")))["taskId"]
            working = (await Caller(client).call("nap", mark=str(tmp_path / "nap")))["taskId"]
    with process_with(url) as new:
        async with client_of(new, shows_forms=True) as client:
            caller = Caller(client)
            said = await caller.until_not_working(waiting)
            await caller.about("tasks/update", waiting, inputResponses=answer(said, {"decision": "once"}))
            assert text_of(await caller.ended(waiting)) == "paid 5"
            said = await caller.until_not_working(working)
            (form,) = said["inputRequests"].values()
            assert "may have" in form["params"]["message"]
    assert (tmp_path / "record").read_text() == "5\n"


async def test_a_question_of_a_handshake_server_is_that_of_the_task(tmp_path: Path, store: Store) -> None:
    is_task = threading.Event()

    async def wait_for_task(call: Any, call_next: Any) -> Any:
        await asyncio.to_thread(is_task.wait, PATIENCE_S)
        return await call_next(call)

    registry = ToolRegistry(rules=RULES)
    registry.register_mcp_client(asking_client(tmp_path / "record"))
    registry.configure(middleware=[wait_for_task])
    gateway = ToolServer(registry, "gateway", store=store, task_s=SHORT_S)
    async with client_of(gateway, shows_forms=True) as client:
        caller = Caller(client)
        task = (await caller.call("w_ask", times=2))["taskId"]
        is_task.set()
        keys = set[str]()
        for _ in range(2):
            said = await caller.until_asked_anew(task, keys)
            keys |= said["inputRequests"].keys()
            await caller.about("tasks/update", task, inputResponses=answer(said, {"size": 3}))
        # Each question has a key of its own, as the extension demands.
        assert len(keys) == 2
        assert text_of(await caller.ended(task)).count('"size": 3') == 2
    registry.close()


async def test_a_header_that_names_another_task_is_refused(tmp_path: Path) -> None:
    class OtherTask(TaskRequest):
        name_param = "other"

    with process_with(f"sqlite:///{tmp_path}/runs.db") as url:
        async with client_of(url) as client:
            request = OtherTask(method="tasks/get", params={"taskId": "one", "other": "two"})
            with pytest.raises(MCPError) as refused:
                await client.session.send_request(request, AnyResult)
    assert refused.value.code == types.HEADER_MISMATCH
