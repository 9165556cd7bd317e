"""Names to tools."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from tests.patience import PATIENCE_S
from toolwire import ToolRegistry
from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.definition.from_function import from_function
from toolwire.vocabulary.errors import RegistrationError


def search(query: str) -> str:
    """Searches."""
    return query


async def fetch(url: str) -> str:
    """Fetches."""
    return url


@dataclass(frozen=True)
class Greeter:
    """Equal to any other of its kind."""

    def greet(self, name: str) -> str:
        """Greets."""
        return name

    def __call__(self, name: str) -> str:
        """Greets."""
        return name


def entry(name: str = "search", handle: object = search) -> Entry:
    function = fetch if handle is fetch else search
    return Entry(name=name, tool=from_function(function), handle=handle)


def catalogue(*names: str) -> Catalogue:
    found = Catalogue()
    for name in names:
        found.add(entry(name))
    return found


def test_entries_are_found_by_their_exact_names_in_order_of_registration() -> None:
    tools = catalogue("b", "a", "c")
    assert [one.name for one in tools] == ["b", "a", "c"]
    assert (len(tools), "a" in tools, "A" in tools) == (3, True, False)
    found = tools.find("a")
    assert found is not None
    assert (found.name, tools.find("A")) == ("a", None)


def test_a_second_tool_of_a_name_is_refused_and_the_first_stays() -> None:
    tools = catalogue("search")
    with pytest.raises(RegistrationError) as caught:
        tools.add(entry("search", fetch))
    assert str(caught.value) == (
        "a tool named 'search' is registered already; "
        "give another name= or prefix=, or replace=True to put this one in its place"
    )
    assert [one.handle for one in tools] == [search]


def test_the_same_object_may_be_added_again() -> None:
    tools = catalogue("search", "search")
    assert len(tools) == 1


def test_a_bound_method_is_the_same_object_each_time_it_is_looked_up() -> None:
    greeter, tools = Greeter(), Catalogue()
    tools.add(entry("greet", greeter.greet))
    tools.add(entry("greet", greeter.greet))
    with pytest.raises(RegistrationError):
        tools.add(entry("greet", Greeter().greet))


def test_an_equal_object_is_another_one() -> None:
    tools = Catalogue()
    tools.add(entry("greet", Greeter()))
    with pytest.raises(RegistrationError):
        tools.add(entry("greet", Greeter()))


def test_replace_puts_the_new_one_in_the_old_ones_place() -> None:
    tools = catalogue("a", "b")
    tools.add(entry("a", fetch), replace=True)
    assert [(one.name, one.handle) for one in tools] == [("a", fetch), ("b", search)]


def test_a_removed_name_is_gone_and_free_again() -> None:
    tools = catalogue("my-tool", "b")
    tools.remove("my-tool")
    assert [one.name for one in tools] == ["b"]
    tools.add(entry("my_tool", fetch))
    assert [one.name for one in tools] == ["b", "my_tool"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("serch", "no tool is named 'serch'; did you mean 'search'?"), ("xyz", "no tool is named 'xyz'")],
)
def test_removing_a_name_that_is_not_there_is_an_error(name: str, message: str) -> None:
    with pytest.raises(RegistrationError) as caught:
        catalogue("search").remove(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [("my-tool", "my_tool", "my_tool"), ("print", "print_", "print_"), ("1st", "_1st", "_1st"), ("a b", "a.b", "a_b")],
)
def test_names_that_programs_could_not_tell_apart_are_refused(first: str, second: str, written: str) -> None:
    tools = catalogue(first)
    for replace in (False, True):
        with pytest.raises(RegistrationError) as caught:
            tools.add(entry(second), replace=replace)
        assert str(caught.value) == (
            f"programs would write {written!r} for both {first!r} and {second!r}; give one of them another name="
        )
    assert [one.name for one in tools] == [first]


def test_it_is_async_while_any_of_its_tools_is() -> None:
    tools = catalogue("search")
    seen = [tools.has_deferred_tools]
    tools.add(entry("fetch", fetch))
    seen.append(tools.has_deferred_tools)
    tools.remove("fetch")
    seen.append(tools.has_deferred_tools)
    assert seen == [False, True, False]


def test_reading_goes_on_while_another_thread_adds() -> None:
    tools, lengths, stop = catalogue("first"), set(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            lengths.add(len(list(tools)))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        tools.add(entry(f"tool_{number}"))
    stop.set()
    reader.join(PATIENCE_S)
    assert (len(tools), max(lengths) <= 301, tools.nearest("toool_7")) == (301, True, "tool_7")


def test_the_same_object_with_other_options_is_refused_so_that_no_permission_is_lost() -> None:
    registry = ToolRegistry()
    registry.register(len_of, permission="deny")
    with pytest.raises(RegistrationError) as raised:
        registry.register(len_of)
    assert str(raised.value) == "'len_of' is registered already with other options; replace=True takes the new ones"
    assert registry.permission_of("len_of") == "deny"
    registry.register(len_of, replace=True)
    assert registry.permission_of("len_of") == "auto"


def len_of(text: str) -> int:
    """Counts."""
    return len(text)
