"""A search finds tools by their purpose, and only visible tools."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire.catalogue import search as search_module
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.search import ToolSearch
from toolwire.catalogue.terms import THESAURUS, same_sense
from toolwire.definition.from_schema import from_schema
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE, WorkClock, WorkLimit


def entry(name: str, description: str = "", *, tags: tuple[str, ...] = (), **parameters: Any) -> Entry:
    schema = {"type": "object", "properties": parameters}
    tool = from_schema(name, description, schema, tags=tags)
    return Entry(name=name, tool=tool, handle=tool)


TOOLS = [
    entry("send_email", "Sends a letter to somebody."),
    entry("files.delete", "Takes a file away for good."),
    entry(
        "createInvoice", "Writes what a customer has to pay.", vat={"type": "number", "description": "Tax in percent"}
    ),
    entry("weather", "Tells the forecast. Covers humidity too.", tags=("climate",)),
    entry("发送短信", "向手机号发送一条短信。"),
    entry("book", "", where={"type": "object", "properties": {"hotel": {"type": "string"}}}),
]


def found(query: str, entries: list[Entry] = TOOLS, limit: int = 5) -> list[str]:
    return [each.name for each in ToolSearch(lambda: entries).find(query, limit)]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("email", "send_email"),
        ("SEND EMAILS", "send_email"),
        ("invoice", "createInvoice"),
        ("remove files", "files.delete"),
        ("mail", "send_email"),
        ("humid forecasts humidity", "weather"),
        ("climate", "weather"),
        ("tax", "createInvoice"),
        ("hotel", "book"),
        ("发邮件", "send_email"),
        ("删除文件", "files.delete"),
        ("给手机发短信", "发送短信"),
        ("sms", "发送短信"),
    ],
)
def test_the_best_is_the_one_that_does_it(query: str, best: str) -> None:
    assert found(query)[0] == best


@pytest.mark.parametrize("query", ["", "   ", "!?", "the of a", "的了吗", "quantum chromodynamics", "\x00"])
def test_a_query_without_terms_finds_nothing(query: str) -> None:
    assert found(query) == []


def test_nothing_is_found_where_nothing_is() -> None:
    assert found("email", []) == []


def test_a_word_in_the_name_counts_more_than_one_in_the_description_and_that_more_than_one_in_a_parameter() -> None:
    words = {"type": "string", "description": "zebra"}
    entries = [entry("one", "", word=words), entry("two", "A zebra."), entry("zebra")]
    assert found("zebra", entries) == ["zebra", "two", "one"]


def test_equal_scores_keep_the_order_and_the_limit_holds() -> None:
    entries = [entry(f"copy_{letter}") for letter in "wxyz"]
    assert found("copy", entries, limit=3) == ["copy_w", "copy_x", "copy_y"]


def test_a_tool_is_found_by_its_exact_name_first() -> None:
    entries = [entry("list.list.events", "Lists events."), entry("events.list", "Nothing."), entry("the")]
    assert found(" events.list ", entries)[0] == "events.list"
    assert found("the", entries) == ["the"]
    assert found("events.list", entries, limit=0) == []


def test_the_word_itself_is_better_than_one_of_the_same_sense() -> None:
    assert found("delete", [entry("remove_file"), entry("delete_file")]) == ["delete_file", "remove_file"]


def test_what_comes_and_goes_is_found_and_not() -> None:
    entries = [entry("list_users")]
    search = ToolSearch(lambda: entries)
    assert search.find("invoice", 5) == []
    entries.append(entry("pay_invoice"))
    assert [each.name for each in search.find("invoice", 5)] == ["pay_invoice"]
    del entries[1]
    assert search.find("invoice", 5) == []


def test_a_bound_parameter_is_not_found() -> None:
    known = entry("pay", "", account={"type": "string", "description": "An iban"})
    search = ToolSearch(lambda: [known])
    assert search.find("iban", 5) == [known]
    known.tool.bindings.bind("account", state_key="account")
    assert search.find("iban", 5) == []
    known.tool.bindings.unbind("account")
    assert search.find("iban", 5) == [known]


def test_a_tool_is_read_once_however_many_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    kind = type(TOOLS[0].tool)
    description = kind.description
    monkeypatch.setattr(kind, "description", property(lambda tool: read.append(tool.name) or description.fget(tool)))
    entries = [entry("list_users")]
    search = ToolSearch(lambda: entries)
    for name in ("pay_invoice", "send_invoice"):
        search.find("invoice", 5)
        search.find("users", 5)
        entries.append(entry(name))
    search.find("invoice", 5)
    assert read == ["list_users", "pay_invoice", "send_invoice"]


def test_threads_search_while_tools_come_and_go() -> None:
    entries: list[Entry] = [entry("send_email")]
    search = ToolSearch(lambda: list(entries))
    wrong: list[object] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            try:
                names = [each.name for each in search.find("email", 1)]
            except Exception as error:
                names = [repr(error)]
            if names != ["send_email"]:
                wrong.append(names)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(100):
        entries.append(entry(f"tool_{number}"))
        if number % 2:
            del entries[1]
    is_over.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert wrong == []


def test_the_table_of_words_is_small_and_says_no_word_twice_in_a_sense() -> None:
    lines = THESAURUS.read_text("utf-8").splitlines()
    senses = [line.split() for line in lines if not line.startswith("#")]
    assert sum(len(sense) - 1 for sense in senses) <= 400
    assert [sense for sense in senses if len(set(sense)) != len(sense) or len(sense) < 2] == []
    assert "remove" in same_sense()["delete"]
    assert "删除" in same_sense()["delete"]


class Clock(WorkClock):
    """A clock of work that is over after it was asked so often."""

    asked = 0
    ends_after = 3

    @property
    def is_over(self) -> bool:
        Clock.asked += 1
        return Clock.asked > Clock.ends_after


def test_a_search_ends_in_time_and_the_next_goes_on_with_what_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    search = ToolSearch(lambda: TOOLS)
    read: list[str] = []
    real = search_module._document

    def document(name: str, tool: Any) -> Any:
        read.append(name)
        return real(name, tool)

    monkeypatch.setattr(search_module, "_document", document)
    with monkeypatch.context() as patch:
        patch.setattr(search_module, "WorkClock", Clock)
        with pytest.raises(WorkLimit, match="the next search goes on"):
            search.find("email", 5)
    assert len(read) == Clock.ends_after
    assert [each.name for each in search.find("email", 5)] == found("email")
    assert sorted(read[: len(TOOLS)]) == sorted(each.name for each in TOOLS)


def test_the_words_of_a_query_end_at_the_deadline_of_the_call() -> None:
    search = ToolSearch(lambda: TOOLS)
    assert search.find("email", 5)
    token = CALL_DEADLINE.set(time.monotonic() - 1)
    try:
        with pytest.raises(WorkLimit):
            search.find("email", 5)
    finally:
        CALL_DEADLINE.reset(token)
