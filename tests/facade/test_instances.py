"""Registering an instance registers the methods that its class marks or its owner names, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.session.till import calls
from toolwire import (
    DefinitionError,
    RegistrationError,
    Session,
    Toolkit,
    ToolRegistry,
    ToolSpec,
    reg_toolspec,
)


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


# -- a prefix for the tools of an instance ------------------------------------------------------------------------


class Mail:
    def __init__(self, owner: str = "me") -> None:
        self.owner = owner

    @reg_toolspec
    def send(self) -> str:
        """Sends."""
        return f"sent by {self.owner}"

    @reg_toolspec(name="look_up")
    def find(self) -> str:
        """Finds."""
        return f"found by {self.owner}"

    def purge(self) -> str:
        """Deletes all."""
        return f"purged by {self.owner}"


def test_two_instances_of_a_class_stand_side_by_side_under_two_prefixes() -> None:
    registry = ToolRegistry()
    registry.register(Mail("ann"), prefix="work")
    registry.register(Mail("bob"), prefix="home")
    assert kinds(registry) == {
        "work_send": "sent by ann",
        "work_look_up": "found by ann",
        "home_send": "sent by bob",
        "home_look_up": "found by bob",
    }
    assert {name: spec.name for name, spec in registry.to_toolspecs().items()} == {
        name: name for name in registry.list_toolspecs()
    }
    session = Session(registry, protocol="openai")
    assert [tool["function"]["name"] for tool in session.instructions if isinstance(tool, dict)] == (
        registry.list_toolspecs()
    )
    assert registry.run_program("home_send()").value == "sent by bob"


def test_a_prefix_stands_before_named_methods_too() -> None:
    registry = ToolRegistry()
    registry.register(Mail(), methods=["purge", "find"], prefix="mail")
    assert kinds(registry) == {"mail_purge": "purged by me", "mail_look_up": "found by me"}


def test_a_prefix_stands_before_the_tools_of_another_registry_class() -> None:
    registry = ToolRegistry()
    registry.register(Lists(), prefix="files")
    assert kinds(registry) == {"files_listing": "listed"}


def test_the_same_instance_under_the_same_prefix_is_there_already() -> None:
    registry, mail = ToolRegistry(), Mail()
    registry.register(mail, prefix="mail")
    registry.register(mail, prefix="mail")
    assert registry.list_toolspecs() == ["mail_send", "mail_look_up"]


def mail_look_up() -> str:
    """Looks something up."""
    return "looked up"


def test_a_collision_is_refused_and_none_of_the_instances_tools_is_registered() -> None:
    registry = ToolRegistry()
    registry.register(mail_look_up)
    with pytest.raises(RegistrationError) as refused:
        registry.register(Mail(), prefix="mail")
    assert str(refused.value) == (
        "a tool named 'mail_look_up' is registered already; "
        "give another name= or prefix=, or replace=True to put this one in its place"
    )
    assert kinds(registry) == {"mail_look_up": "looked up"}
    # A program writes `mail_send` for this name: the refused tool of that name left nothing behind.
    registry.register(mail_look_up, name="mail-send")
    assert kinds(registry) == {"mail_look_up": "looked up", "mail-send": "looked up"}


def test_replace_puts_the_tools_of_an_instance_in_the_place_of_others() -> None:
    registry = ToolRegistry()
    registry.register(mail_look_up)
    registry.register(Mail(), prefix="mail", replace=True)
    assert kinds(registry) == {"mail_look_up": "found by me", "mail_send": "sent by me"}


def test_names_that_a_program_writes_alike_are_refused_with_a_prefix_too() -> None:
    registry = ToolRegistry()
    registry.register(mail_look_up, name="mail-send")
    with pytest.raises(RegistrationError, match="programs would write 'mail_send' for both"):
        registry.register(Mail(), prefix="mail")
    assert registry.list_toolspecs() == ["mail-send"]


@pytest.mark.parametrize("prefix", ["", "my mail", "mail.", "mail_", "_mail", "1mail", "邮件", "mail-box", "a\n", 3])
def test_a_prefix_that_models_could_not_spell_is_refused(prefix: Any) -> None:
    registry = ToolRegistry()
    assert refusal(lambda: registry.register(Mail(), prefix=prefix)) == (
        f"prefix={prefix!r}: write ASCII letters, digits and '_' with a letter first, and no '_' at the end: "
        "prefix='mail' makes mail_send of send"
    )
    assert registry.list_toolspecs() == []


def test_a_name_that_is_too_long_for_a_provider_is_refused_and_one_that_fits_is_not() -> None:
    registry = ToolRegistry()
    longest = "p" * (64 - len("_look_up"))
    assert refusal(lambda: registry.register(Mail(), prefix=f"{longest}p")) == (
        f"prefix='{longest}p': the name of its tool 'look_up' would have 65 characters, and models are told of 64: "
        "write a shorter prefix"
    )
    registry.register(Mail(), prefix=longest)
    assert [len(name) for name in registry.list_toolspecs()] == [61, 64]


@pytest.mark.parametrize("thing", [mail_look_up, ToolSpec.from_function(mail_look_up), len])
def test_a_prefix_is_for_an_instance_alone(thing: Any) -> None:
    assert refusal(lambda: ToolRegistry().register(thing, prefix="mail")) == (
        f"prefix='mail' for {thing!r:.80}: only an instance with several tools has a prefix, give name='...'"
    )


def test_a_name_and_a_prefix_together_are_refused() -> None:
    registry = ToolRegistry()
    assert refusal(lambda: registry.register(Mail(), "send", methods=["send"], prefix="mail")) == (
        "name='send' beside prefix='mail': give one of them"
    )


def test_a_toolkit_takes_all_tools_of_an_instance_or_none() -> None:
    toolkit = Toolkit("agent")
    toolkit.add_tool(ToolSpec.from_function(mail_look_up, name="look_up"))
    with pytest.raises(RegistrationError):
        toolkit.add_tool(Mail())
    assert list(toolkit.tools) == ["look_up"]
