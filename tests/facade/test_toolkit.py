"""`Toolkit`: functions with presets in groups, a structured finish, and the saved state."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from toolwire import ConfigurationError, DefinitionError, RegistrationError, Rule, Toolkit, ToolRegistry, ToolSpec


def search(query: str, limit: int = 3) -> list[str]:
    """Searches."""
    return [query] * limit


def route(start: str) -> str:
    """Finds a way."""
    return f"from {start}"


def finish(response: str) -> str:
    """Ends the work."""
    return response


class Verdict(BaseModel):
    sure: bool
    score: int = 0


def grouped() -> Toolkit:
    toolkit = Toolkit("ann")
    toolkit.create_tool_group("maps", "Maps and routes", notes="Kilometres only.")
    toolkit.register_tool_function(search)
    toolkit.register_tool_function(route, "maps")
    return toolkit


def names(schemas: list[dict[str, Any]]) -> list[str]:
    return [schema["function"]["name"] for schema in schemas]


def test_tools_of_groups_that_are_not_active_are_registered_and_not_offered() -> None:
    toolkit = grouped()
    assert list(toolkit.tools) == ["search", "route"]
    assert names(toolkit.get_json_schemas()) == ["search"]
    assert names(toolkit.get_json_schemas(["maps"])) == ["route"]
    assert names(toolkit.get_json_schemas(["maps", "basic"])) == ["search", "route"]
    assert toolkit.get_json_schemas([]) == []


def test_a_denied_tool_is_not_offered() -> None:
    registry = ToolRegistry(rules=[Rule(effect="deny", tool="search")])
    toolkit = registry.create_agent_toolkit("ann")
    toolkit.register_tool_function(search)
    toolkit.register_tool_function(route)
    assert names(toolkit.get_json_schemas()) == ["route"]


def test_groups_are_removed_with_their_tools() -> None:
    toolkit = grouped()
    toolkit.remove_tool_groups(["maps"])
    assert (list(toolkit.tools), list(toolkit.groups)) == (["search"], ["basic"])
    toolkit.register_tool_function(route)
    assert toolkit.tools["route"].group == "basic"


def test_notes_are_those_of_active_groups() -> None:
    toolkit = grouped()
    assert toolkit.get_tool_group_notes() == ""
    toolkit.create_tool_group("mail", "Letters", active=True, notes="Be polite.")
    toolkit.create_tool_group("plain", "Nothing to mind", active=True)
    toolkit.update_tool_groups(["maps"], active=True)
    assert toolkit.get_tool_group_notes() == (
        "About the tools of 'maps':\nKilometres only.\n\nAbout the tools of 'mail':\nBe polite."
    )


def test_the_views_are_for_reading() -> None:
    toolkit = grouped()
    for view in (toolkit.groups, toolkit.tools):
        with pytest.raises(TypeError):
            view["other"] = None  # pyright: ignore[reportIndexIssue]
    toolkit.tools["search"].json_schema["function"]["name"] = "changed"
    toolkit.tools["search"].preset_kwargs["query"] = "changed"
    assert toolkit.tools["search"].json_schema["function"]["name"] == "search"
    assert toolkit.tools["search"].preset_kwargs == {}


def test_a_preset_shows_in_no_repr() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(search, preset_kwargs={"query": "s3cret"})
    assert repr(toolkit.tools["search"]) == "<RegisteredToolFunction 'search' in 'basic', preset: query>"
    assert toolkit.tools["search"] == toolkit.tools["search"]


def test_a_tool_that_is_one_already_can_be_registered_with_presets() -> None:
    toolkit = Toolkit()
    spec = ToolSpec.from_function(search, permission="confirm")
    toolkit.register_tool_function(spec, preset_kwargs={"limit": 1}, func_description="Finds.")
    assert toolkit.get_tool("search") is spec
    assert list(spec.params) == ["query", "limit"]
    assert spec.description == "Searches."
    fields = toolkit.tools["search"].json_schema["function"]
    assert (list(fields["parameters"]["properties"]), fields["description"]) == (["query"], "Finds.")


async def test_a_json_schemas_name_is_the_tools_name() -> None:
    toolkit = Toolkit()
    form = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}
    toolkit.register_tool_function(lambda: "found", json_schema=form)
    assert (await toolkit.execute_tool("look_up")).data == "found"


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            lambda toolkit: toolkit.register_tool_function(search),
            RegistrationError,
            "a tool named 'search' is here already: give this one another name",
        ),
        (
            lambda toolkit: toolkit.register_tool_function(finish, "mpas"),
            RegistrationError,
            "no tool group is named 'mpas'; did you mean 'maps'?",
        ),
        (
            lambda toolkit: toolkit.register_tool_function(lambda: 1),
            DefinitionError,
            "a lambda has no name: write it with def, or give a json_schema that has one",
        ),
        (
            lambda toolkit: toolkit.register_tool_function(finish, preset_kwargs=["response"]),
            DefinitionError,
            "preset_kwargs=['response']: give a dict, each parameter's name with its value",
        ),
        (
            lambda toolkit: toolkit.register_tool_function(ToolSpec.from_function(finish), include_var_keyword=True),
            DefinitionError,
            (
                "tool 'finish' is a tool already and knows its arguments: leave json_schema and include_... out, or "
                "register its function"
            ),
        ),
        (
            lambda toolkit: toolkit.get_json_schemas(["post"]),
            RegistrationError,
            "no tool group is named 'post'; the groups are basic, maps",
        ),
        (
            lambda toolkit: toolkit.set_extended_model("serch", Verdict),
            RegistrationError,
            "no tool is named 'serch'; did you mean 'search'?",
        ),
    ],
)
def test_what_cannot_be_done_says_what_to_write(
    wrong: Callable[[Toolkit], Any], kind: type[Exception], message: str
) -> None:
    toolkit = grouped()
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        wrong(toolkit)
    assert (list(toolkit.tools), list(toolkit.groups)) == (["search", "route"], ["basic", "maps"])


# -- a structured finish ----------------------------------------------------------------------------------------------


async def test_the_result_has_the_text_and_the_model() -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(finish)
    toolkit.set_extended_model("finish", Verdict)
    result = await toolkit.execute_tool("finish", {"response": "Done.", "sure": True})
    assert dict(result.metadata) == {"response_msg": "Done.", "structured": Verdict(sure=True)}
    assert toolkit.tools["finish"].extended_model is Verdict

    toolkit.set_extended_model("finish", None)
    assert toolkit.tools["finish"].extended_model is None
    assert dict((await toolkit.execute_tool("finish", {"response": "Done."})).metadata) == {}


async def test_a_call_that_the_model_refuses_never_reaches_the_function() -> None:
    called: list[str] = []

    def end(response: str) -> str:
        """Ends."""
        called.append(response)
        return response

    toolkit = Toolkit()
    toolkit.register_tool_function(end)
    toolkit.set_extended_model("end", Verdict)
    refused = await toolkit.execute_tool("end", {"response": "Done.", "sure": "perhaps"})
    assert refused.text == (
        "The arguments of 'end' are wrong:\n- 'sure' must be a boolean, not 'perhaps'.\n"
        "Correct them and call 'end' again. It takes: response (required), sure (required), score (optional)."
    )
    assert called == []
    await toolkit.execute_tool("end", {"response": "Done.", "sure": False})
    assert called == ["Done."]


async def test_a_finish_function_that_fails_has_no_structured_result() -> None:
    def end(response: str) -> str:
        """Ends."""
        raise RuntimeError("no")

    toolkit = Toolkit()
    toolkit.register_tool_function(end)
    toolkit.set_extended_model("end", Verdict)
    assert dict((await toolkit.execute_tool("end", {"response": "x", "sure": True})).metadata) == {}


async def test_a_finish_function_whose_result_cannot_be_shown_fails_as_any_other() -> None:
    def end(response: str) -> object:
        """Ends."""
        return object()

    toolkit = Toolkit()
    toolkit.register_tool_function(end)
    toolkit.set_extended_model("end", Verdict)
    result = await toolkit.execute_tool("end", {"response": "x", "sure": True})
    assert result.failure is not None
    assert result.failure.kind == "invalid_result"


# -- saving -----------------------------------------------------------------------------------------------------------


def saved() -> dict[str, Any]:
    toolkit = grouped()
    toolkit.create_tool_group("mail", "Letters", active=True)
    toolkit.register_tool_function(finish, "mail", preset_kwargs={"response": "s3cret"})
    return json.loads(json.dumps(toolkit.state_dict()))


def test_names_are_saved_and_no_presets() -> None:
    assert saved() == {
        "version": 1,
        "active_groups": ["mail"],
        "groups": ["maps", "mail"],
        "tools": ["search", "route", "finish"],
    }


def test_loading_switches_the_groups_as_they_were_and_leaves_new_ones_alone() -> None:
    toolkit = grouped()
    toolkit.register_tool_function(finish)
    toolkit.create_tool_group("mail", "Letters")
    toolkit.create_tool_group("new", "Made since", active=True)
    toolkit.update_tool_groups(["maps"], active=True)
    toolkit.load_state_dict(saved())
    assert {name: group.active for name, group in toolkit.groups.items()} == {
        "basic": True,
        "maps": False,
        "mail": True,
        "new": True,
    }


def test_a_tool_and_a_group_that_are_gone_are_warned_of_and_the_rest_is_loaded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("mail", "Letters")
    toolkit.register_tool_function(search)
    toolkit.register_tool_function(finish)
    with caplog.at_level(logging.WARNING, logger="toolwire.toolkit"):
        toolkit.load_state_dict(saved())
    assert caplog.messages == [
        "the saved toolkit had a group 'maps', which is not here: it is left out",
        "the saved toolkit had a tool 'route', which is not here: it is left out",
    ]
    assert toolkit.groups["mail"].active


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"version": 2},
            (
                "this toolkit's state was saved by a newer toolwire: it has version 2, and this one reads up to 1; "
                "upgrade toolwire, or start without the state"
            ),
        ),
        ({"version": None}, "a toolkit's state has a 'version' of 1 or more, not None"),
        ({"version": True}, "a toolkit's state has a 'version' of 1 or more, not True"),
        ({"version": 0}, "a toolkit's state has a 'version' of 1 or more, not 0"),
        (
            {"presets": {}},
            "unknown key 'presets' in a toolkit's state: it has version, active_groups, groups, tools",
        ),
        (
            {"active_groups": "mail"},
            "'active_groups' in a toolkit's state must be a list of names, not 'mail'",
        ),
        ({"tools": [1]}, "'tools' in a toolkit's state must be a list of names, not [1]"),
        ({"groups": None}, "'groups' in a toolkit's state must be a list of names, not None"),
    ],
)
def test_a_state_that_cannot_be_read_changes_nothing(change: dict[str, Any], message: str) -> None:
    toolkit = grouped()
    toolkit.update_tool_groups(["maps"], active=True)
    with pytest.raises(ConfigurationError, match=f"^{re.escape(message)}$"):
        toolkit.load_state_dict({**saved(), **change})
    assert toolkit.groups["maps"].active


def test_a_value_that_is_not_a_state_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"^a toolkit's state is a dict as state_dict\(\) gives it, not \[\]$"):
        Toolkit().load_state_dict([])  # pyright: ignore[reportArgumentType]
