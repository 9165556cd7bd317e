"""Questions of a server: of the handshake revisions while a call waits, and of 2026-07-28 between two requests."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from mcp import Client
from tests.architecture.source import ROOT
from tests.mcp.client.asking_server import FORM
from tests.mcp.client.asking_url import asking_url
from tests.mcp.client.tool_server import OBJECT, text
from tests.patience import PATIENCE_S, until
from toolwire import ApprovalRequest, Decision, MCPClient, Session, ToolRegistry, ToolServer
from toolwire.journal.store import Store
from toolwire.mcp.asked import server_questions
from toolwire.mcp.asked.server_questions import question_of
from toolwire.mcp.client_limits import FORM_CHARACTERS, FORM_FIELDS, QUESTIONS, ROUND_TRIPS, STATE_CHARACTERS
from toolwire.mcp.server_log import ServerLog
from toolwire.permission.approval import Decider
from toolwire.permission.rendering import render

CALL = '{"name": "shop/order", "arguments": {}}'


class Person:
    """An approver that keeps the requests, and gives these answers in order. With None it does not answer."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[ApprovalRequest] = []
        self._answers = list(answers)

    def __call__(self, request: ApprovalRequest) -> Decision | None:
        self.asked.append(request)
        answer = self._answers.pop(0)
        return answer if answer is None or isinstance(answer, Decision) else Decision(verdict="answer", answer=answer)


DENIED = Decision(verdict="deny", reason="not today")
NOBODY = "toolwire, without a person"
BY_A_PERSON = Decision(verdict="deny", reason="not today", by=Decider(principal="ann", channel="console"))


class Shop:
    """A server of 2026-07-28 whose tool answers with these results in order. `legs` has the params of each request."""

    def __init__(self, *results: Any) -> None:
        self.legs: list[types.CallToolRequestParams] = []
        rest = list(results)

        async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="order", input_schema=OBJECT)])

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
            self.legs.append(params)
            return rest.pop(0) if len(rest) > 1 else rest[0]

        self.client = MCPClient.in_memory("shop", Server("shop", on_list_tools=list_tools, on_call_tool=call_tool))

    def registry(self, approver: Any = None) -> ToolRegistry:
        registry = ToolRegistry(approver=approver)
        registry.register_mcp_client(self.client, permission="auto")
        return registry

    @property
    def answers(self) -> list[Any]:
        """The answers that the server got with each request after the first."""
        found: list[dict[str, Any]] = [dict(leg.input_responses or {}) for leg in self.legs[1:]]
        return [{name: (said.action, said.content) for name, said in answers.items()} for answers in found]


def wanted(schema: Any = FORM, message: str = "How much?", state: str | None = "s1") -> types.InputRequiredResult:
    params = types.ElicitRequestFormParams(message=message, requested_schema=schema)
    return types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=params)}, request_state=state)


Shops = Callable[..., Shop]


@pytest.fixture
def shops() -> Generator[Shops]:
    made: list[Shop] = []

    def make(*results: Any) -> Shop:
        made.append(Shop(*results))
        return made[-1]

    yield make
    for shop in made:
        shop.client.close()


# -- 2026-07-28 -----------------------------------------------------------------------------------------------------


def test_the_answer_goes_back_with_the_state_of_the_server(shops: Shops) -> None:
    shop, person = shops(wanted(), text("two")), Person({"size": 2})
    assert shop.registry(person).invoke("shop/order").text == "two"
    assert shop.answers == [{"q": ("accept", {"size": 2})}]
    assert [leg.request_state for leg in shop.legs] == [None, "s1"]
    (request,) = person.asked
    assert (request.kind, request.question, request.answer_schema) == ("question", "How much?", FORM)


def test_a_question_bears_the_name_of_its_server_as_a_label(shops: Shops) -> None:
    person = Person({"size": 2})
    shops(wanted(), text("two")).registry(person).invoke("shop/order")
    assert person.asked[0].reasons == ("untrusted:shop",)
    assert "label      untrusted:shop" in render(person.asked[0]).splitlines()


@pytest.mark.parametrize(
    ("approver", "logged", "by"),
    [
        (None, f"{NOBODY}, declined to answer 'How much?': no answer came", NOBODY),
        (Person(None, None), f"{NOBODY}, declined to answer 'How much?': no answer came", NOBODY),
        (Person(DENIED), "the approver declined to answer 'How much?': not today", "the approver"),
        (Person(BY_A_PERSON), "the person declined to answer 'How much?': not today", None),
    ],
    ids=["nobody", "no answer", "the approver", "a person"],
)
def test_a_question_is_declined_without_a_person_or_by_one_and_the_log_and_the_server_hear_by_what(
    shops: Shops, approver: Any, logged: str, by: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    shop = shops(wanted(), text("closed"))
    assert shop.registry(approver).invoke("shop/order").text == "closed"
    assert f"its question was declined: {logged}" in caplog.text
    said = (shop.legs[1].input_responses or {})["q"]
    assert said.meta == (None if by is None else {"toolwire/declinedBy": by})
    assert shop.answers == [{"q": ("decline", None)}]


async def test_an_async_call_is_asked_about_too(shops: Shops) -> None:
    shop = shops(wanted(), text("two"))
    registry = await asyncio.to_thread(shop.registry, Person({"size": 2}))
    assert (await registry.ainvoke("shop/order")).text == "two"


def test_a_program_gets_the_result_after_the_question(shops: Shops) -> None:
    shop = shops(wanted(), text("two"))
    result = shop.registry(Person({"size": 2})).run_program("print(shop_order())")
    assert (result.stdout, shop.answers) == ("two\n", [{"q": ("accept", {"size": 2})}])


def test_with_a_store_the_turn_is_suspended_and_another_session_goes_on(shops: Shops, tmp_path: Path) -> None:
    shop, store = shops(wanted(), text("two")), f"sqlite:///{tmp_path}/runs.db"
    first = Session(shop.registry(), protocol="json", store=store).run_turn(CALL)
    assert first.suspended is not None
    (request,) = first.suspended.pending
    assert (request.question, request.reasons, len(shop.legs)) == ("How much?", ("untrusted:shop",), 1)
    said = [{"request_id": request.id, "verdict": "answer", "answer": {"size": 3}}]
    shop.client.close()
    second = Session(shop.registry(), protocol="json", store=store).run_resume(first.suspended.run_id, said)
    assert [result.text for result in second.results] == ["two"]
    assert shop.answers == [{"q": ("accept", {"size": 3})}]
    assert [leg.request_state for leg in shop.legs] == [None, "s1"]


async def test_a_question_passes_through_a_server_of_ours_to_its_client(shops: Shops, tmp_path: Path) -> None:
    shop, forms = shops(wanted(), text("two")), list[Any]()

    async def fill_in(context: Any, params: Any) -> types.ElicitResult:
        forms.append(params.requested_schema["properties"])
        return types.ElicitResult(action="accept", content={"size": 4})

    registry = await asyncio.to_thread(shop.registry)
    server = ToolServer(registry, name="shops", store=f"sqlite:///{tmp_path}/runs.db")
    async with Client(server.in_memory(), elicitation_callback=fill_in) as client:
        (tool,) = (await client.list_tools()).tools
        result: Any = await client.call_tool(tool.name, {})
    assert ([block.text for block in result.content], forms) == (["two"], [FORM["properties"]])
    assert shop.answers == [{"q": ("accept", {"size": 4})}]


def test_a_state_without_a_question_is_sent_back_at_once(shops: Shops) -> None:
    shop = shops(types.InputRequiredResult(request_state="later"), text("done"))
    assert shop.registry().invoke("shop/order").text == "done"
    assert [leg.request_state for leg in shop.legs] == [None, "later"]


@pytest.mark.parametrize("asks", [ROUND_TRIPS - 1, ROUND_TRIPS])
def test_a_server_asks_at_most_so_many_times(shops: Shops, asks: int) -> None:
    shop = shops(*[wanted()] * asks, text("done"))
    result = shop.registry().invoke("shop/order")
    assert len(shop.legs) == ROUND_TRIPS
    assert (result.failure and result.failure.kind) == (None if asks < ROUND_TRIPS else "limit")


def test_a_person_gets_ten_questions_of_one_call(shops: Shops, monkeypatch: pytest.MonkeyPatch) -> None:
    params = types.ElicitRequestFormParams(message="How much?", requested_schema=FORM)
    many = types.InputRequiredResult(
        input_requests={f"q{number}": types.ElicitRequest(params=params) for number in range(6)}, request_state="s"
    )

    def asked() -> tuple[int, list[Any]]:
        shop, person = shops(many, many, text("done")), Person(*[{"size": 2}] * 12)
        assert shop.registry(person).invoke("shop/order").text == "done"
        return len(person.asked), sorted(action for leg in shop.answers for action, _ in leg.values())

    assert asked() == (QUESTIONS, ["accept"] * QUESTIONS + ["decline"] * 2)
    # The control: without the limit all are asked.
    monkeypatch.setattr(server_questions, "QUESTIONS", 12)
    assert asked() == (12, ["accept"] * 12)


@pytest.mark.parametrize("characters", [STATE_CHARACTERS, STATE_CHARACTERS + 1])
def test_a_state_has_a_limit(shops: Shops, characters: int) -> None:
    shop = shops(wanted(state="x" * characters), text("done"))
    result = shop.registry().invoke("shop/order")
    assert (result.failure and result.failure.kind) == (None if characters == STATE_CHARACTERS else "limit")


def test_a_request_that_is_not_offered_fails_the_call(shops: Shops) -> None:
    roots = types.InputRequiredResult(input_requests={"r": types.ListRootsRequest()})
    result = shops(roots).registry().invoke("shop/order")
    assert result.error == "the server needs roots/list, and this client does not offer it"


def page(url: str) -> types.InputRequiredResult:
    params = types.ElicitRequestURLParams(message="Log in", url=url)
    return types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=params)})


@pytest.mark.parametrize(("answer", "action"), [(True, "accept"), (False, "decline")])
def test_a_page_to_open_is_a_question_with_its_whole_address(shops: Shops, answer: bool, action: str) -> None:
    shop, person = shops(page("https://bank.test/login?a=1"), text("done")), Person(answer)
    shop.registry(person).invoke("shop/order")
    assert person.asked[0].question == (
        "The server asks you to open a page of bank.test in your browser:\nhttps://bank.test/login?a=1\nLog in"
    )
    assert shop.answers == [{"q": (action, None)}]


def test_a_page_of_another_kind_is_declined(shops: Shops, caplog: pytest.LogCaptureFixture) -> None:
    shop, person = shops(page("file:///etc/passwd"), text("done")), Person()
    assert shop.registry(person).invoke("shop/order").text == "done"
    assert (person.asked, shop.answers) == ([], [{"q": ("decline", None)}])
    assert "its question was declined: it named a page that is not at http:// or https://" in caplog.text


def fields(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(count)}}


def long(characters: int) -> dict[str, Any]:
    form = {"type": "object", "properties": {"f": {"type": "string", "description": ""}}}
    form["properties"]["f"]["description"] = "x" * (characters - len(json.dumps(form)))
    return form


NESTED = {"type": "object", "properties": {"f": {"type": "object", "properties": {"g": {"type": "string"}}}}}
UNION = {"type": "object", "properties": {"f": {"anyOf": [{"type": "string"}] * 2**10}}}
WIDE = {"type": "object", "properties": {}, "allOf": [{"anyOf": [{}] * 100}] * 50}


@pytest.mark.parametrize(
    ("schema", "is_asked"),
    [
        (fields(FORM_FIELDS), True),
        (fields(FORM_FIELDS + 1), False),
        (long(FORM_CHARACTERS), True),
        (long(FORM_CHARACTERS + 1), False),
        ({"type": "object", "properties": {"f": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}}}, True),
        ({"type": "object", "properties": {"f": {"type": "array", "items": {"enum": ["a", "b"]}}}}, True),
        (NESTED, False),
        (UNION, False),
        (WIDE, False),
        ({"type": "object", "properties": {"f": {"type": "string", "minLength": "many"}}}, False),
        ({"type": "array"}, False),
    ],
)
def test_a_form_is_asked_if_it_is_small_and_flat(schema: Any, is_asked: bool, caplog: pytest.LogCaptureFixture) -> None:
    params = types.ElicitRequestFormParams(message="How much?", requested_schema=schema)
    question = question_of(params, ServerLog("shop"), number=1)
    assert (question is not None, "its question was declined: " in caplog.text) == (is_asked, not is_asked)


def test_a_form_that_is_not_small_is_declined_and_the_call_goes_on(shops: Shops) -> None:
    shop, person = shops(wanted(fields(FORM_FIELDS + 1)), text("done")), Person()
    assert shop.registry(person).invoke("shop/order").text == "done"
    assert (person.asked, shop.answers) == ([], [{"q": ("decline", None)}])


def test_a_pattern_that_backtracks_does_not_hold_the_answer_up(shops: Shops) -> None:
    bomb = {"type": "object", "properties": {"f": {"type": "string", "pattern": "^(a+)+$"}}}
    shop = shops(wanted(bomb), text("done"))
    shop.registry(Person({"f": "a" * 40 + "b"}, DENIED)).invoke("shop/order")
    assert shop.answers == [{"q": ("decline", None)}]


def test_the_owner_s_own_call_has_no_person(shops: Shops, caplog: pytest.LogCaptureFixture) -> None:
    shop = shops(wanted(), text("done"))
    assert shop.client.get_callable_function("order")().result(PATIENCE_S).text == "done"
    assert shop.answers == [{"q": ("decline", None)}]
    assert "its question was declined: this call has no person" in caplog.text


# -- handshake revisions --------------------------------------------------------------------------------------------


class Old:
    def __init__(self, record: Path, **limits: Any) -> None:
        self._record = record
        command = ["-m", "tests.mcp.client.asking_server", str(record)]
        self.client = MCPClient.stdio("shop", sys.executable, command, cwd=ROOT, **limits)

    def registry(self, approver: Any = None) -> ToolRegistry:
        registry = ToolRegistry(approver=approver)
        registry.register_mcp_client(self.client, permission="auto")
        return registry

    @property
    def calls(self) -> Sequence[str]:
        return [line for line in self._record.read_text("utf-8").splitlines() if line.startswith("call ")]


@pytest.fixture
def old(tmp_path: Path) -> Generator[Callable[..., Old]]:
    made: list[Old] = []

    def make(**limits: Any) -> Old:
        made.append(Old(tmp_path / "record", **limits))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


ACCEPTED, DECLINED = '{"action": "accept", "content": {"size": 2}}', '{"action": "decline"}'


@pytest.mark.parametrize(
    ("approver", "said"),
    [(Person({"size": 2}), ACCEPTED), (Person(DENIED), DECLINED), (Person(None), DECLINED), (None, DECLINED)],
)
def test_a_server_that_waits_gets_the_answer_or_a_refusal(
    old: Callable[..., Old], approver: Person | None, said: str
) -> None:
    server = old()
    assert server.registry(approver).invoke("shop/ask").text == said
    if approver is not None:
        assert [(request.question, request.reasons) for request in approver.asked] == [
            ("How much?", ("untrusted:shop",))
        ]


async def test_a_loop_waits_for_the_person_without_a_thread_of_its_own(old: Callable[..., Old]) -> None:
    registry = await asyncio.to_thread(old().registry, Person({"size": 2}, {"size": 2}))
    assert (await registry.ainvoke("shop/ask", {"times": 2})).text == f"{ACCEPTED} {ACCEPTED}"


def test_the_time_of_the_call_stands_still_while_the_person_thinks(old: Callable[..., Old]) -> None:
    def slow(request: ApprovalRequest) -> Decision:
        since = time.monotonic()
        until(lambda: time.monotonic() > since + 1.5)
        return Decision(verdict="answer", answer={"size": 2})

    assert old(call_s=1.0).registry(slow).invoke("shop/ask").text == ACCEPTED


def test_a_time_limit_of_the_tool_stands_still_too(old: Callable[..., Old]) -> None:
    def slow(request: ApprovalRequest) -> Decision:
        since = time.monotonic()
        until(lambda: time.monotonic() > since + 2.5)
        return Decision(verdict="answer", answer={"size": 2})

    ask = old().client.get_callable_function("ask")
    registry = ToolRegistry(approver=slow)
    registry.register(ask, timeout_s=2.0, permission="auto")
    assert registry.invoke("shop/ask").text == ACCEPTED


def test_with_a_store_a_server_that_waits_is_refused_and_asked_once(old: Callable[..., Old], tmp_path: Path) -> None:
    server = old()
    session = Session(server.registry(), protocol="json", store=f"sqlite:///{tmp_path}/runs.db")
    turn = session.run_turn('{"name": "shop/ask", "arguments": {}}')
    assert turn.suspended is None
    assert [result.text for result in turn.results] == [DECLINED]
    assert server.calls == ["call ask"]


def test_a_question_of_a_server_that_waits_is_not_kept_for_later(old: Callable[..., Old], tmp_path: Path) -> None:
    # After a crash nothing may lead back to the call, because it would be sent again.
    store, pending = Store.open(f"sqlite:///{tmp_path}/runs.db"), list[Any]()

    def look(request: ApprovalRequest) -> Decision:
        pending.append(store.pending())
        return Decision(verdict="answer", answer={"size": 2})

    session = Session(old().registry(look), protocol="json", store=store)
    turn = session.run_turn('{"name": "shop/ask", "arguments": {}}')
    assert ([result.text for result in turn.results], pending) == ([ACCEPTED], [[]])


async def test_by_http_a_question_reaches_the_person_of_its_own_call() -> None:
    people = {1: Person({"size": 1}), 2: Person({"size": 2})}
    with asking_url() as url:
        client = MCPClient.http("shop", url)
        ask = await asyncio.to_thread(client.get_callable_function, "ask")
        registries = {size: ToolRegistry(approver=person) for size, person in people.items()}
        for registry in registries.values():
            registry.register(ask, permission="auto")
        calls = [registry.ainvoke("shop/ask", {"times": size}) for size, registry in registries.items()]
        results = await asyncio.gather(*calls)
        await asyncio.to_thread(client.close)
    assert [json.loads(result.text)["content"] for result in results] == [{"size": 1}, {"size": 2}]
    assert [request.question for person in people.values() for request in person.asked] == [
        "question of 1",
        "question of 2",
    ]


def test_a_person_who_stops_the_run_ends_the_call(old: Callable[..., Old]) -> None:
    stop = Person(Decision(verdict="stop_run", reason="enough"))
    result = old().registry(stop).invoke("shop/ask")
    assert result.failure is not None
    assert (result.failure.kind, result.failure.data["reason"]) == ("denied", "enough")


async def test_a_question_of_several_calls_is_declined_because_it_names_none(
    old: Callable[..., Old], caplog: pytest.LogCaptureFixture
) -> None:
    server, person = old(), Person()
    registry = await asyncio.to_thread(server.registry, person)
    with caplog.at_level(logging.WARNING, "toolwire.mcp.shop"):
        results = await asyncio.gather(registry.ainvoke("shop/pair"), registry.ainvoke("shop/pair"))
    assert sorted(result.text for result in results) == ["", DECLINED]
    assert person.asked == []
    assert "its question was declined: 2 calls are under way, and it names none" in caplog.text


def test_a_form_of_a_server_that_waits_is_bounded_too(old: Callable[..., Old]) -> None:
    person = Person()
    assert old().registry(person).invoke("shop/ask", {"form": fields(FORM_FIELDS + 1)}).text == DECLINED
    assert person.asked == []


def test_a_server_that_waits_asks_as_often_as_any_other(
    old: Callable[..., Old], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    person = Person(*[{"size": 2}] * (2 * QUESTIONS + 1))
    registry = old().registry(person)
    said = registry.invoke("shop/ask", {"times": QUESTIONS + 1}).text
    assert said == " ".join([*[ACCEPTED] * QUESTIONS, DECLINED])
    assert f"its question was declined: it asked {QUESTIONS} times in this call already" in caplog.text
    # The control: without the limit all are asked.
    monkeypatch.setattr(server_questions, "QUESTIONS", QUESTIONS + 1)
    assert registry.invoke("shop/ask", {"times": QUESTIONS + 1}).text == " ".join([ACCEPTED] * (QUESTIONS + 1))


def test_only_questions_are_offered(old: Callable[..., Old], tmp_path: Path) -> None:
    old().registry()
    # Any other capability would stand in the same line.
    until(lambda: "capabilities elicitation" in (tmp_path / "record").read_text("utf-8").splitlines())
