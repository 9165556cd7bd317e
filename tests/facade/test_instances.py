"""An instance gives the tools that its class marks, or that its owner names, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.session.till import calls
from toolwire import DefinitionError, Session, Toolkit, ToolRegistry, reg_toolspec


def kinds(registry: ToolRegistry) -> dict[str, Any]:
    return {name: registry.invoke(name).data for name in registry.list_toolspecs()}


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as caught:
        make()
    return str(caught.value)


@pytest.mark.parametrize(
    "offer",
    [
        lambda thing: Session([thing], protocol="openai"),
        lambda thing: ToolRegistry().register(thing),
        lambda thing: Toolkit("agent").add_tool(thing),
    ],
)
def test_a_path_gives_no_tool_and_its_file_stays(tmp_path: Path, offer: Any) -> None:
    file = tmp_path / "kept.txt"
    file.write_text("kept")
    message = refusal(lambda: offer(file))
    assert message.endswith(
        "whose tools are marked, @reg_toolspec in PosixPath, or named, register(instance, methods=['...'])"
    )


def test_named_methods_and_no_others_are_tools(tmp_path: Path) -> None:
    file = tmp_path / "kept.txt"
    file.write_text("kept")
    registry = ToolRegistry()
    registry.register(file, methods=["exists"])
    session = Session(registry, protocol="openai")
    turn = asyncio.run(session.turn(calls(("exists", {}), ("unlink", {}))))
    assert [result.failure and result.failure.kind for result in turn.results] == [None, "unknown_tool"]
    assert file.read_text() == "kept"


def test_one_named_method_may_have_another_name() -> None:
    registry = ToolRegistry()
    registry.register(Path("/"), "is_there", methods=["exists"])
    assert kinds(registry) == {"is_there": True}


class Shop:
    @reg_toolspec(permission="confirm")
    def pay(self) -> str:
        """Pays."""
        return "paid"

    def close(self) -> str:
        """Closes."""
        return "closed"


def test_the_options_of_a_mark_count_for_a_named_method_too() -> None:
    registry = ToolRegistry()
    registry.register(Shop(), methods=["pay", "close"])
    assert [registry.permission_of(name) for name in ("pay", "close")] == ["confirm", "auto"]


@pytest.mark.parametrize(
    ("thing", "methods", "message"),
    [
        (
            Shop(),
            ["payy"],
            "Shop has no method 'payy'; did you mean 'pay'?: only methods that are written in Python can be tools",
        ),
        (Shop(), "pay", "methods='pay': write a list of names, methods=['read', 'write']"),
        (Shop(), [], "methods=[]: write a list of names, methods=['read', 'write']"),
        (
            len,
            ["pay"],
            "methods=['pay'] for <built-in function len>: only an instance has methods to name",
        ),
    ],
)
def test_methods_that_cannot_be_named_are_refused(thing: Any, methods: Any, message: str) -> None:
    assert refusal(lambda: ToolRegistry().register(thing, methods=methods)) == message


class Reads:
    @reg_toolspec
    def read(self) -> str:
        """Reads."""
        return "read"

    @staticmethod
    @reg_toolspec
    def name() -> str:
        """Names."""
        return "named"


class Writes(ToolRegistry):
    @reg_toolspec
    def write(self) -> str:
        """Writes."""
        return "written"

    @classmethod
    @reg_toolspec
    def count(cls) -> str:
        """Counts."""
        return cls.__name__


class Lists(ToolRegistry):
    @reg_toolspec
    @staticmethod
    def listing() -> str:
        """Lists."""
        return "listed"


class Files(Writes, Lists, Reads):
    def write(self) -> str:
        """Writes twice."""
        return "written twice"


class Plain(Reads):
    def read(self) -> str:
        """Reads twice."""
        return "read twice"


def test_marked_methods_of_all_bases_and_mixins_are_tools() -> None:
    assert kinds(Files()) == {
        "read": "read",
        "name": "named",
        "listing": "listed",
        "write": "written twice",
        "count": "Files",
    }
    registry = ToolRegistry()
    registry.register(Plain())
    assert kinds(registry) == {"read": "read twice", "name": "named"}


def test_none_in_the_place_of_a_marked_method_takes_the_tool_away() -> None:
    class Closed(Files):
        write = None  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    assert "write" not in Closed().list_toolspecs()


def _property() -> type:
    class Wrong(ToolRegistry):
        @property
        @reg_toolspec
        def size(self) -> int:
            """The size."""
            return 1

    return Wrong


def _cached() -> type:
    class Wrong(ToolRegistry):
        @cached_property
        @reg_toolspec
        def size(self) -> int:
            """The size."""
            return 1

    return Wrong


def _hidden() -> type:
    class Wrong(Files):
        write = 3  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    return Wrong


@pytest.mark.parametrize(
    ("make", "what"),
    [(_property, "size is a property"), (_cached, "size is a cached_property"), (_hidden, "write is a int")],
)
def test_a_mark_that_cannot_be_kept_is_refused_where_the_class_is_defined(make: Any, what: str) -> None:
    assert refusal(make) == (
        f"Wrong.{what}, and it was marked as a tool: mark a method, or write None in its place to take the tool away"
    )


@pytest.mark.parametrize("thing", [property(lambda _: 1), Shop, 3])
def test_only_methods_can_be_marked(thing: Any) -> None:
    assert refusal(lambda: reg_toolspec()(thing)) == f"@reg_toolspec on {thing!r:.80}: mark a method, written with def"
