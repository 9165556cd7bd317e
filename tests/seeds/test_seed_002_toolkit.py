"""The seed on toolkits: registration, groups, schemas, the structured finish, and the saved state.

It has no example that runs: each signature, default and error is tried here in its own words.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

import toolwire
from toolwire import (
    ConfigurationError,
    DefinitionError,
    RegisteredToolFunction,
    RegistrationError,
    Rule,
    ToolFunction,
    ToolGroup,
    Toolkit,
    ToolRegistry,
    ToolResponse,
    ToolResult,
    ToolSpec,
    ToolUseBlock,
    execute_python_code,
)
from toolwire.definition.from_function import FunctionShape
from toolwire.vocabulary.blocks import ContentBlock


def search(query: str, limit: int = 10) -> str:
    """Searches the web.

    It knows yesterday's pages, not today's.

    Args:
        query: What to look for
        limit: How many pages
    """
    return f"{limit} pages on {query}"


def read_file(path: str, service: object) -> str:
    """Reads a file by a service of the host."""
    return f"{path} by {service}"


def anything(first: str, *rest: str, **more: str) -> str:
    """Takes anything."""
    return f"{first} {rest} {more}"


def generate_response(response: str, **more: Any) -> str:
    """Ends the task with an answer."""
    return response


class Report(BaseModel):
    title: str
    pages: int


def schema_of(toolkit: Toolkit, name: str) -> dict[str, Any]:
    (found,) = [schema for schema in toolkit.get_json_schemas() if schema["function"]["name"] == name]
    return found["function"]


def registered(function: ToolFunction, **options: Any) -> Toolkit:
    toolkit = Toolkit()
    toolkit.register_tool_function(function, **options)
    return toolkit


async def text_of(toolkit: Toolkit, name: str, **arguments: Any) -> str:
    return (await toolkit.execute_tool(name, arguments)).text


# -- registration -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "toolkit.register.group-name",
    "toolkit.register.preset-kwargs",
    "toolkit.register.include-long-description",
    "toolkit.register.include-var-positional",
    "toolkit.register.include-var-keyword",
)
def test_the_parameters_of_registration_and_their_defaults() -> None:
    parameters = list(inspect.signature(Toolkit.register_tool_function).parameters.values())[1:]
    assert [(each.name, each.default) for each in parameters] == [
        ("tool_func", inspect.Parameter.empty),
        ("group_name", "basic"),
        ("preset_kwargs", None),
        ("func_description", None),
        ("json_schema", None),
        ("include_long_description", True),
        ("include_var_positional", False),
        ("include_var_keyword", False),
        ("postprocess_func", None),
    ]
    assert {each.kind for each in parameters} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


@pytest.mark.requirement("toolkit.register.tool-func")
def test_registration_takes_the_function_first_and_gives_nothing() -> None:
    register: Any = Toolkit().register_tool_function
    assert register(search) is None


@pytest.mark.requirement(
    "toolkit.register.from-signature", "toolkit.interaction.formatter", "toolkit.schemas.no-titles"
)
def test_signature_and_docstring_give_the_schema_in_the_form_of_chat_models() -> None:
    assert registered(search).get_json_schemas() == [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "Searches the web.\n\nIt knows yesterday's pages, not today's.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "query": {"type": "string", "description": "What to look for"},
                        "limit": {"type": "integer", "description": "How many pages", "default": 10},
                    },
                    "required": ["query"],
                    "additionalProperties": False,
                },
            },
        }
    ]


@pytest.mark.requirement("toolkit.schemas.no-titles")
def test_a_parameter_called_title_stays() -> None:
    def write(title: str, report: Report) -> str:
        """Writes."""
        return title

    schema = schema_of(registered(write), "write")["parameters"]
    assert list(schema["properties"]) == ["title", "report"]
    assert list(schema["$defs"]["Report"]["properties"]) == ["title", "pages"]
    assert "Title" not in json.dumps(schema)

    form = {"type": "function", "function": {"name": "write", "parameters": Report.model_json_schema()}}
    given = schema_of(registered(lambda **fields: "", json_schema=form), "write")["parameters"]
    assert given["properties"] == {"title": {"type": "string"}, "pages": {"type": "integer"}}


@pytest.mark.requirement("toolkit.register.partial")
async def test_fixed_arguments_of_a_partial_are_in_no_schema() -> None:
    toolkit = registered(functools.partial(search, limit=2))
    assert list(schema_of(toolkit, "search")["parameters"]["properties"]) == ["query"]
    assert await text_of(toolkit, "search", query="x") == "2 pages on x"
    refused = await toolkit.execute_tool("search", {"query": "x", "limit": 3})
    assert refused.failure is not None
    assert refused.failure.path == "limit"


@pytest.mark.requirement("toolkit.register.preset-kwargs", "toolkit.call.merges-preset")
async def test_a_preset_may_be_any_object_and_is_merged_with_what_the_model_gives() -> None:
    class Service:
        def __repr__(self) -> str:
            return "the service"

    toolkit = registered(read_file, preset_kwargs={"service": Service()})
    assert list(schema_of(toolkit, "read_file")["parameters"]["properties"]) == ["path"]
    assert await text_of(toolkit, "read_file", path="a.txt") == "a.txt by the service"


@pytest.mark.requirement("toolkit.register.preset-not-overridable")
async def test_a_preset_cannot_be_given_by_the_model() -> None:
    preset, open_ = registered(search, preset_kwargs={"limit": 1}), registered(search)
    assert await text_of(open_, "search", query="x", limit=99) == "99 pages on x"
    assert await text_of(preset, "search", query="x", limit=99) == (
        "The arguments of 'search' are wrong:\n- 'limit' is set by the host and not yours to give: remove it.\n"
        "Correct them and call 'search' again. It takes: query (required)."
    )


@pytest.mark.requirement("toolkit.register.func-description")
def test_a_description_of_ones_own_replaces_the_docstrings() -> None:
    assert schema_of(registered(search, func_description="Finds."), "search")["description"] == "Finds."


@pytest.mark.requirement("toolkit.register.include-long-description")
def test_the_long_description_is_left_out_on_demand() -> None:
    toolkit = registered(search, include_long_description=False)
    assert schema_of(toolkit, "search")["description"] == "Searches the web."


@pytest.mark.requirement("toolkit.register.include-var-positional", "toolkit.register.include-var-keyword")
@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["first"]),
        ({"include_var_positional": True}, ["first", "rest"]),
        ({"include_var_keyword": True}, ["first", "more"]),
    ],
)
def test_variadic_parameters_are_in_the_schema_on_demand(options: dict[str, bool], names: list[str]) -> None:
    toolkit = registered(anything, **options)
    assert list(schema_of(toolkit, "anything")["parameters"]["properties"]) == names


@pytest.mark.requirement("toolkit.register.json-schema")
@pytest.mark.parametrize("is_nested", [True, False])
async def test_a_schema_of_ones_own_replaces_that_of_the_signature(is_nested: bool) -> None:
    parameters = {"type": "object", "properties": {"first": {"type": "string", "enum": ["a"]}}, "required": ["first"]}
    fields = {"name": "anything", "description": "Takes a.", "parameters": parameters}
    form = {"type": "function", "function": fields} if is_nested else {"type": "function", **fields}
    toolkit = registered(anything, json_schema=form)
    assert schema_of(toolkit, "anything") == fields
    assert await text_of(toolkit, "anything", first="a") == "a () {}"
    assert (await toolkit.execute_tool("anything", {"first": "b"})).success is False


@pytest.mark.requirement("toolkit.register.bad-json-schema")
@pytest.mark.parametrize("form", [[], {}, {"type": "object", "properties": {}}, {"type": "function", "function": []}])
def test_a_schema_of_another_structure_is_a_type_error(form: Any) -> None:
    with pytest.raises(TypeError, match="json_schema") as caught:
        registered(search, json_schema=form)
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.requirement("toolkit.register.duplicate")
def test_a_second_registration_of_a_name_is_a_value_error() -> None:
    toolkit = registered(search)
    with pytest.raises(ValueError, match="a tool named 'search' is here already") as caught:
        toolkit.register_tool_function(search)
    assert isinstance(caught.value, RegistrationError)


@pytest.mark.requirement("toolkit.design.schema-apart")
async def test_the_schema_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[frozenset[str]] = []
    compile_form = FunctionShape.compile

    def counted(shape: FunctionShape, hidden: frozenset[str]) -> Any:
        compiled.append(hidden)
        return compile_form(shape, hidden)

    monkeypatch.setattr(FunctionShape, "compile", counted)
    toolkit = registered(search)
    form = toolkit.tools["search"].json_schema
    assert compiled == [frozenset()]

    def changed(query: int) -> None: ...

    search_signature = inspect.signature(changed)
    search.__signature__ = search_signature  # pyright: ignore[reportFunctionMemberAccess]
    try:
        assert await text_of(toolkit, "search", query="x", limit=1) == "1 pages on x"
        assert toolkit.tools["search"].json_schema == form
        assert compiled == [frozenset()]
    finally:
        del search.__signature__  # pyright: ignore[reportFunctionMemberAccess]


# -- the saved state --------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "toolkit.member.tools",
    "toolkit.registered.function",
    "toolkit.registered.group",
    "toolkit.registered.json-schema",
    "toolkit.registered.preset-kwargs",
    "toolkit.registered.postprocess-func",
    "toolkit.registered.extended-model",
)
def test_the_tools_are_registered_tool_functions() -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("web", "The web")
    toolkit.register_tool_function(search, "web", preset_kwargs={"limit": 1})
    tool = toolkit.tools["search"]
    assert isinstance(tool, RegisteredToolFunction)
    assert (tool.name, tool.function, tool.group) == ("search", search, "web")
    assert (tool.preset_kwargs, tool.extended_model) == ({"limit": 1}, None)
    assert tool.postprocess_func is None
    assert [tool.json_schema] == toolkit.get_json_schemas(group_names=["web"])
    assert list(tool.json_schema["function"]["parameters"]["properties"]) == ["query"]
    assert finishing().tools["generate_response"].extended_model is Report


@pytest.mark.requirement("toolkit.pattern.adapter", "toolkit.design.sources")
async def test_functions_partials_built_in_finish_and_mcp_tools_live_in_one_toolkit() -> None:
    # A remote tool runs without a request only if a rule permits it.
    registry = ToolRegistry(rules=[Rule(effect="auto", tool="remote")])
    toolkit = registry.create_agent_toolkit("ann")
    toolkit.register_tool_function(search)
    toolkit.register_tool_function(functools.partial(anything, "x"))
    toolkit.register_tool_function(execute_python_code)
    toolkit.register_tool_function(generate_response)
    toolkit.set_extended_model("generate_response", Report)
    remote = {"name": "remote", "inputSchema": {"type": "object", "properties": {}}}
    toolkit.register_tool_function(ToolSpec.from_mcp(remote, function=lambda: "far away"))
    assert {name: type(tool) for name, tool in toolkit.tools.items()} == dict.fromkeys(
        ["search", "anything", "execute_python_code", "generate_response", "remote"], RegisteredToolFunction
    )
    assert [await text_of(toolkit, "anything"), await text_of(toolkit, "remote")] == ["x () {}", "far away"]


@pytest.mark.requirement("toolkit.exports.execute-python-code")
async def test_python_code_runs_in_the_sandbox_and_never_in_this_process() -> None:
    toolkit = registered(execute_python_code)
    assert await text_of(toolkit, "execute_python_code", code="print(6 * 7)") == "42\n"
    for code in ("import os\nprint(os.getpid())", "open('/etc/hostname')", "search('x')"):
        assert (await toolkit.execute_tool("execute_python_code", {"code": code})).success is False
    own = await execute_python_code("print('by its owner')")
    assert (own.success, own.text) == (True, "by its owner\n")
    assert own.metadata["isolation"]["level"].startswith("kernel")


@pytest.mark.requirement("toolkit.exports.execute-python-code")
@pytest.mark.parametrize("seconds", [0, 301])
async def test_python_code_has_seconds_within_limits(seconds: float) -> None:
    arguments = {"code": "print(1)", "timeout": seconds}
    refused = await registered(execute_python_code).execute_tool("execute_python_code", arguments)
    assert refused.failure is not None
    assert (refused.failure.kind, refused.failure.path) == ("invalid_arguments", "timeout")


async def test_python_code_that_takes_too_long_is_stopped() -> None:
    result = await execute_python_code("print('begun')\nwhile True: pass", timeout=1.5)
    assert result.failure is not None
    assert result.failure.kind == "timeout"
    assert result.text.startswith("begun\n")


# -- postprocessing, and calling one tool -----------------------------------------------------------------------------


def text_response(text: str) -> ToolResponse:
    return ToolResponse(content=[{"type": "text", "text": text}])


@pytest.mark.requirement("toolkit.register.postprocess-replaces", "toolkit.register.postprocess-none")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("stands_in", "expected"), [("changed", "changed"), (None, "10 pages on x")])
async def test_postprocessing_replaces_the_response_or_keeps_it(
    is_async: bool, stands_in: str | None, expected: str
) -> None:
    seen: list[tuple[ToolUseBlock, list[ContentBlock]]] = []

    def sync(block: ToolUseBlock, response: ToolResponse) -> ToolResponse | None:
        seen.append((block, response.content))
        return None if stands_in is None else text_response(stands_in)

    async def later(block: ToolUseBlock, response: ToolResponse) -> ToolResponse | None:
        return sync(block, response)

    toolkit = registered(search, postprocess_func=later if is_async else sync)
    assert await text_of(toolkit, "search", query="x") == expected
    ((block, content),) = seen
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "search", {"query": "x"})
    assert content == [{"type": "text", "text": "10 pages on x"}]


@pytest.mark.requirement("toolkit.pattern.strategy")
async def test_presets_postprocessing_and_model_are_settings_of_the_single_tool() -> None:
    def shout(block: ToolUseBlock, response: ToolResponse) -> ToolResponse:
        return text_response("LOUD")

    toolkit = registered(search, preset_kwargs={"limit": 1}, postprocess_func=shout)
    toolkit.register_tool_function(generate_response)
    toolkit.set_extended_model("generate_response", Report)
    settings = {
        name: (tool.preset_kwargs, tool.postprocess_func, tool.extended_model) for name, tool in toolkit.tools.items()
    }
    assert settings == {"search": ({"limit": 1}, shout, None), "generate_response": ({}, None, Report)}
    assert await text_of(toolkit, "search", query="x") == "LOUD"


@pytest.mark.requirement("toolkit.registered.call", "toolkit.finish.is-last")
async def test_one_tool_can_be_called_by_itself_and_yields_responses() -> None:
    def count(to: int) -> Iterator[str]:
        """Counts."""
        yield from map(str, range(to))

    toolkit = registered(count)
    stream = toolkit.tools["count"].call(arguments={"to": 3})
    chunks = [chunk async for chunk in stream]
    assert all(isinstance(chunk, ToolResponse) for chunk in chunks)
    assert [chunk.is_last for chunk in chunks][-1:] == [True]
    assert not any(chunk.is_last for chunk in chunks[:-1])

    (last,) = [
        chunk
        async for chunk in finishing()
        .tools["generate_response"]
        .call(arguments={"response": "Done.", "title": "T", "pages": 3})
    ]
    assert (last.is_last, last.content) == (True, [{"type": "text", "text": "Done."}])
    assert last.metadata == {"response_msg": "Done.", "structured": Report(title="T", pages=3)}


@pytest.mark.requirement("toolkit.registered.call")
@pytest.mark.parametrize(("stream_print", "printed"), [(None, ""), (False, ""), (True, "ab\n")])
async def test_the_text_is_printed_as_it_comes_on_demand(
    stream_print: bool | None, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def spell() -> Iterator[ToolResponse]:
        """Spells."""
        for text, is_last in (("a", False), ("ab", True)):
            yield ToolResponse(content=[{"type": "text", "text": text}], stream=True, is_last=is_last)

    calling = registered(spell).tools["spell"].call(arguments={}, stream_print=stream_print)
    assert [chunk.content async for chunk in calling][-1] == [{"type": "text", "text": "ab"}]
    assert capsys.readouterr().out == printed


@pytest.mark.requirement("toolkit.flow.round", "toolkit.scope.one-class")
async def test_offered_tools_run_and_answer() -> None:
    toolkit = grouped()
    toolkit.update_tool_groups(["files"], active=True)
    given = {"search": {"query": "x"}, "read_file": {"path": "a"}}
    answers: list[tuple[list[ContentBlock], bool]] = []
    for schema in toolkit.get_json_schemas():
        name = schema["function"]["name"]
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given.pop(name)}
        (chunk,) = [chunk async for chunk in toolkit.call_tool_function(block)]
        answers.append((chunk.content, chunk.is_last))
    assert given == {}
    assert answers == [(text_response(text).content, True) for text in ("10 pages on x", "a by None")]


@pytest.mark.requirement("toolkit.module.names")
def test_the_names_are_importable_from_the_root() -> None:
    for name in (
        *("Toolkit", "ToolResponse", "ToolGroup", "RegisteredToolFunction"),
        *("TextBlock", "ImageBlock", "AudioBlock", "ToolUseBlock"),
    ):
        assert getattr(toolwire, name).__name__ == name


# -- groups -----------------------------------------------------------------------------------------------------------


def grouped() -> Toolkit:
    toolkit = registered(search)
    toolkit.create_tool_group("files", "Files of the user", notes="Only under /workspace.")
    toolkit.register_tool_function(read_file, "files", preset_kwargs={"service": None})
    return toolkit


def names(schemas: list[dict[str, Any]]) -> list[str]:
    return [schema["function"]["name"] for schema in schemas]


@pytest.mark.requirement(
    "toolkit.group.create",
    "toolkit.member.groups",
    "toolkit.tool-group.name",
    "toolkit.tool-group.description",
    "toolkit.tool-group.active",
    "toolkit.tool-group.notes",
)
def test_a_group_that_is_created_is_among_the_groups() -> None:
    group = grouped().groups["files"]
    assert isinstance(group, ToolGroup)
    assert (group.name, group.description, group.active, group.notes) == (
        "files",
        "Files of the user",
        False,
        "Only under /workspace.",
    )


@pytest.mark.requirement("toolkit.group.update", "toolkit.group.schemas-follow", "toolkit.schemas.group-names")
def test_schemas_follow_the_groups_that_are_active() -> None:
    toolkit = grouped()
    seen = [names(toolkit.get_json_schemas())]
    toolkit.update_tool_groups(["files"], active=True)
    seen.append(names(toolkit.get_json_schemas(group_names=None)))
    toolkit.update_tool_groups(["files"], active=False)
    seen.append(names(toolkit.get_json_schemas()))
    assert seen == [["search"], ["search", "read_file"], ["search"]]
    assert inspect.signature(toolkit.get_json_schemas).parameters["group_names"].default is None


@pytest.mark.requirement("toolkit.group.remove")
def test_groups_go_together_with_their_tools() -> None:
    toolkit = grouped()
    toolkit.remove_tool_groups(["files"])
    assert (list(toolkit.groups), list(toolkit.tools)) == (["basic"], ["search"])


@pytest.mark.requirement("toolkit.group.basic-resident", "toolkit.group.remove-basic")
def test_basic_is_always_there_and_active() -> None:
    toolkit = Toolkit()
    assert toolkit.groups["basic"].active
    for touch in (
        lambda: toolkit.remove_tool_groups(["basic"]),
        lambda: toolkit.update_tool_groups(["basic"], active=False),
        lambda: toolkit.create_tool_group("basic", "Mine"),
    ):
        with pytest.raises(ValueError, match=r"'basic' (cannot be removed|is always (active|there))"):
            touch()
    assert toolkit.groups["basic"].active


@pytest.mark.requirement("toolkit.group.notes")
def test_notes_are_one_text_of_the_active_groups() -> None:
    toolkit = grouped()
    assert toolkit.get_tool_group_notes() == ""
    toolkit.update_tool_groups(["files"], active=True)
    assert toolkit.get_tool_group_notes() == "About the tools of 'files':\nOnly under /workspace."


@pytest.mark.requirement("toolkit.interaction.dynamic")
async def test_tools_and_groups_come_and_go_between_turns() -> None:
    toolkit = Toolkit()
    assert toolkit.get_json_schemas() == []
    toolkit.create_tool_group("web", "The web", active=True)
    toolkit.register_tool_function(search, "web")
    assert await text_of(toolkit, "search", query="x") == "10 pages on x"
    toolkit.update_tool_groups(["web"], active=False)
    inactive = await toolkit.execute_tool("search", {"query": "x"})
    assert inactive.failure is not None
    assert inactive.failure.kind == "inactive_tool"


# -- the structured finish --------------------------------------------------------------------------------------------


def finishing() -> Toolkit:
    toolkit = registered(generate_response)
    toolkit.set_extended_model("generate_response", Report)
    return toolkit


async def finish(**arguments: Any) -> ToolResult:
    return await finishing().execute_tool("generate_response", arguments)


@pytest.mark.requirement("toolkit.finish.set-extended-model", "toolkit.finish.reuse")
def test_the_models_fields_are_in_the_schema_of_the_finish_function() -> None:
    parameters = schema_of(finishing(), "generate_response")["parameters"]
    assert parameters == {
        "type": "object",
        "properties": {
            "response": {"type": "string"},
            "title": {"type": "string"},
            "pages": {"type": "integer"},
        },
        "required": ["response", "title", "pages"],
        "additionalProperties": False,
    }
    assert list(inspect.signature(Toolkit.set_extended_model).parameters)[1:] == [
        "finish_function_name",
        "structured_model",
    ]


@pytest.mark.requirement("toolkit.finish.validates")
async def test_a_call_is_validated_by_the_model_and_the_errors_go_back() -> None:
    result = await finish(response="Done.", title="T", pages="many")
    assert result.text == (
        "The arguments of 'generate_response' are wrong:\n- 'pages' must be an integer, not 'many'.\nCorrect them and "
        "call 'generate_response' again. It takes: response (required), title (required), pages (required)."
    )


@pytest.mark.requirement("toolkit.finish.validates")
async def test_a_validator_of_the_model_sees_each_call() -> None:
    class Even(BaseModel):
        pages: int

        @field_validator("pages")
        @classmethod
        def even(cls, pages: int) -> int:
            if pages % 2:
                raise ValueError("print on both sides")
            return pages

    toolkit = registered(generate_response)
    toolkit.set_extended_model("generate_response", Even)

    odd = await toolkit.execute_tool("generate_response", {"response": "Done.", "pages": 3})
    even = await toolkit.execute_tool("generate_response", {"response": "Done.", "pages": 4})

    assert odd.failure is not None
    assert (odd.failure.kind, odd.failure.path, "print on both sides" in odd.text) == (
        "invalid_arguments",
        "pages",
        True,
    )
    assert even.metadata["structured"] == Even(pages=4)


@pytest.mark.requirement("toolkit.finish.response-msg", "toolkit.interaction.final-answer")
async def test_the_text_and_the_validated_model_are_in_the_metadata() -> None:
    result = await finish(response="Done.", title="T", pages="3")
    assert dict(result.metadata) == {"response_msg": "Done.", "structured": Report(title="T", pages=3)}


# -- saving -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("toolkit.state.kept")
def test_the_state_holds_active_groups_and_registered_names_and_no_presets() -> None:
    toolkit = grouped()
    toolkit.create_tool_group("keys", "Secrets", active=True)
    toolkit.register_tool_function(anything, "keys", preset_kwargs={"first": "s3cret"})
    assert json.loads(json.dumps(toolkit.state_dict())) == {
        "version": 1,
        "active_groups": ["keys"],
        "groups": ["files", "keys"],
        "tools": ["search", "read_file", "anything"],
    }


@pytest.mark.requirement("toolkit.state.restored", "toolkit.interaction.session")
def test_a_loaded_state_brings_the_active_groups_back() -> None:
    first, second = grouped(), grouped()
    first.update_tool_groups(["files"], active=True)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert names(second.get_json_schemas()) == names(first.get_json_schemas()) == ["search", "read_file"]
    second.load_state_dict(grouped().state_dict())
    assert names(second.get_json_schemas()) == ["search"]
    with pytest.raises(ConfigurationError):
        second.load_state_dict({**first.state_dict(), "version": 2})
