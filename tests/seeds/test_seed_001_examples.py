"""Every code example of the seed on tool specifications, run as it is written, with the result that it states.

A value replaces each `...` of the seed, and methods that the seed only calls are defined.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import Any, Dict, List  # noqa: UP035

import pytest
from mcp.types import Tool as MCPTool

from toolwire import CallFailed, DefinitionError, ToolRegistry, ToolResult, ToolSpec, reg_toolspec


def search_database(query: str, limit: int = 10) -> dict:
    """在数据库中搜索匹配的记录。

    Args:
        query: 搜索查询字符串
        limit: 返回的最大结果数

    Returns:
        dict: 包含匹配记录的搜索结果
    """
    return {"results": [f"{query} {number}" for number in range(limit)]}


def user_action(user_id: str, action: str) -> str:
    """为用户执行操作。

    Args:
        user_id: 用户标识符
        action: 要执行的操作

    Returns:
        str: 操作的结果
    """
    return f"User {user_id} performed: {action}"


def request(query: str, api_key: str) -> str:
    """Asks something of a service that wants a key."""
    return f"{query} with {api_key}"


CODE = """
def calculate_sum(a: int, b: int) -> int:
    '''将两个数字相加。

    Args:
        a: 第一个数字
        b: 第二个数字

    Returns:
        int: a 和 b 的和
    '''
    return a + b
"""

MY_TOOL_SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


@pytest.fixture
def search() -> ToolSpec:
    return ToolSpec.from_function(search_database, parse_docstring=True)


@pytest.fixture
def bound_action() -> ToolSpec:
    tool = ToolSpec.from_function(user_action)
    tool.bind(param="user_id", default="user123")
    return tool


@pytest.mark.requirement("spec.from-function.example", "spec.from-function.func", "spec.from-function.parse-docstring")
def test_a_tool_is_made_from_a_function_with_its_docstring_read() -> None:
    tool = ToolSpec.from_function(search_database, parse_docstring=True)

    assert tool.name == "search_database"
    assert tool.call(query="test", limit=1) == search_database("test", 1)
    assert tool.description == "在数据库中搜索匹配的记录。"
    assert tool.params == {
        "query": {"type": "string", "description": "搜索查询字符串"},
        "limit": {"type": "integer", "default": 10, "description": "返回的最大结果数"},
    }


@pytest.mark.requirement("spec.from-function.parse-docstring-default")
def test_the_docstring_is_read_by_default() -> None:
    assert (
        ToolSpec.from_function(search_database).params
        == ToolSpec.from_function(search_database, parse_docstring=True).params
    )


@pytest.mark.requirement("spec.from-mcp.example", "spec.from-mcp.schema")
def test_a_tool_is_made_from_an_mcp_tool() -> None:
    mcp_tool = MCPTool(name="my_tool", description="工具描述", inputSchema=MY_TOOL_SCHEMA)

    tool = ToolSpec.from_mcp(mcp_tool)

    assert (tool.name, tool.description) == ("my_tool", "工具描述")
    assert tool.input_schema == MY_TOOL_SCHEMA


@pytest.mark.requirement("spec.from-code.example")
def test_a_tool_is_made_from_code() -> None:
    tool = ToolSpec.from_code(
        code=CODE,
        func_name="calculate_sum",
        env=None,
    )

    assert tool.call(a=2, b=3) == 5
    assert tool.description == "将两个数字相加。"


@pytest.mark.requirement("spec.from-code.func-name-optional")
def test_the_only_function_of_the_code_is_found() -> None:
    assert ToolSpec.from_code(code=CODE).name == "calculate_sum"


@pytest.mark.requirement("spec.from-code.env-default")
def test_code_without_an_environment_has_the_builtins_alone() -> None:
    code = "def known() -> list[bool]:\n    return [name in globals() for name in ('search_database', 'json', 'Any')]\n"

    assert ToolSpec.from_code(code=code).call() == [False, False, False]
    assert ToolSpec.from_code(code="def size(text: str) -> int:\n    return len(text)\n").call(text="abc") == 3


@pytest.mark.requirement("spec.from-code.env")
def test_code_may_use_the_names_of_its_environment() -> None:
    code = "def scaled(value: int) -> int:\n    return value * FACTOR\n"

    assert ToolSpec.from_code(code=code, env={"FACTOR": 7}).call(value=6) == 42


@pytest.mark.requirement("spec.bind.default", "spec.bind.state-key-default", "spec.bind.call-without")
def test_a_bound_parameter_need_not_be_given() -> None:
    tool = ToolSpec.from_function(user_action)

    tool.bind(param="user_id", default="user123")

    result = tool(action="login")
    assert result == "User user123 performed: login"
    assert tool.binds == {"user_id": "user_id"}


@pytest.mark.requirement("spec.bind.live", "spec.core.state", "spec.tool.keeps-state")
def test_state_that_is_set_after_a_call_is_used_by_the_next(bound_action: ToolSpec) -> None:
    assert bound_action(action="login") == "User user123 performed: login"

    bound_action.state["user_id"] = "user456"

    assert bound_action(action="logout") == "User user456 performed: logout"


@pytest.mark.requirement("spec.bind.nested-keys", "spec.bind.nested-default", "spec.bind.state-replaced")
def test_a_dotted_state_key_is_looked_up_level_by_level() -> None:
    tool = ToolSpec.from_function(request)
    tool.bind(param="api_key", state_key="config.api.key", default="default_key")
    assert tool(query="test") == "test with default_key"

    tool.state = {"config": {"api": {"key": "my_secret_key"}}}

    result = tool(query="test")
    assert result == "test with my_secret_key"

    for leads_nowhere in ({"config": {}}, {"config": {"api": {}}}, {"config": {"api": "key"}}, {"config.api.key": "k"}):
        tool.state = leads_nowhere
        assert tool(query="test") == "test with default_key"


@pytest.mark.requirement("spec.unbind.explicit", "spec.unbind.missing")
def test_an_unbound_parameter_has_to_be_given_again(bound_action: ToolSpec) -> None:
    bound_action.unbind(param="user_id")

    assert list(bound_action.params) == ["user_id", "action"]
    assert bound_action(user_id="user789", action="login") == "User user789 performed: login"
    with pytest.raises(CallFailed) as raised:
        bound_action(action="login")
    assert raised.value.result.failure is not None
    assert (raised.value.result.failure.kind, raised.value.result.failure.path) == ("invalid_arguments", "user_id")


@pytest.mark.requirement("spec.call.main-value", "spec.exec.result", "spec.call.shorthand")
def test_a_tool_is_called_synchronously(search: ToolSpec) -> None:
    five = {"results": ["test 0", "test 1", "test 2", "test 3", "test 4"]}

    result = search.call(query="test", limit=5)
    assert result == five

    full_result = search.exec(query="test", limit=5)
    assert isinstance(full_result, ToolResult)
    assert (full_result.success, full_result.structured_content) == (True, five)

    result = search(query="test")
    assert result == search.call(query="test")


@pytest.mark.requirement("spec.acall.main-value", "spec.aexec.result")
async def test_a_tool_is_called_asynchronously(search: ToolSpec) -> None:
    result = await search.acall(query="test", limit=1)
    assert result == {"results": ["test 0"]}

    full_result = await search.aexec(query="test", limit=1)
    assert isinstance(full_result, ToolResult)
    assert full_result.structured_content == {"results": ["test 0"]}


@pytest.mark.requirement("spec.run.inside-loop")
async def test_a_tool_is_called_synchronously_inside_a_running_loop(search: ToolSpec) -> None:
    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text

    awaited = ToolSpec.from_function(later)

    assert search.call(query="test", limit=1) == {"results": ["test 0"]}
    assert (awaited.call(text="a"), awaited(text="b"), awaited.exec(text="c").data) == ("a", "b", "c")


@pytest.mark.requirement("spec.return.single-property")
def test_the_value_of_the_only_output_property_is_the_main_value() -> None:
    schema = {"type": "object", "properties": {"results": {"type": "array"}}, "required": ["results"]}
    tool = ToolSpec.from_function(search_database, output_schema=schema)

    assert tool.call(query="test", limit=2) == ["test 0", "test 1"]


@pytest.mark.requirement("spec.return.structured", "spec.return.structured-content")
def test_several_output_properties_are_returned_together() -> None:
    def page(query: str) -> dict:
        return {"query": query, "pages": 3}

    schema = {"type": "object", "properties": {"query": {"type": "string"}, "pages": {"type": "integer"}}}
    tool = ToolSpec.from_function(page, output_schema=schema)

    assert tool.call(query="test") == {"query": "test", "pages": 3}
    assert tool.exec(query="test").structured_content == {"query": "test", "pages": 3}


@pytest.mark.requirement("spec.return.metadata")
def test_a_full_result_says_how_long_the_call_took() -> None:
    def busy(for_ms: int) -> float:
        started = time.perf_counter()
        while (took_ms := (time.perf_counter() - started) * 1000) < for_ms:
            pass
        return took_ms

    tool = ToolSpec.from_function(busy)
    started = time.perf_counter()

    result = tool.exec(for_ms=5)

    assert result.data <= result.metadata["duration_ms"] <= (time.perf_counter() - started) * 1000


@pytest.mark.requirement("spec.return.error", "spec.return.raises")
def test_a_failed_call_is_a_result_for_exec_and_an_exception_for_call() -> None:
    def read(path: str) -> str:
        raise FileNotFoundError(path)

    tool = ToolSpec.from_function(read)

    result = tool.exec(path="/nowhere")
    assert (result.success, result.error) == (False, "FileNotFoundError: /nowhere")
    with pytest.raises(FileNotFoundError, match=r"^/nowhere$"):
        tool.call(path="/nowhere")
    with pytest.raises(CallFailed) as raised:
        tool.call(path=3)
    assert (raised.value.result.success, str(raised.value)) == (False, tool.exec(path=3).error)


@pytest.mark.requirement(
    "spec.schema.input", "spec.schema.property", "spec.schema.default", "spec.schema.required", "spec.schema.params"
)
def test_the_input_schema_is_a_json_schema_of_the_parameters(search: ToolSpec) -> None:
    input_schema = search.input_schema
    params = search.params

    assert input_schema["type"] == "object"
    assert input_schema["properties"] == {
        "query": {"type": "string", "description": "搜索查询字符串"},
        "limit": {"type": "integer", "default": 10, "description": "返回的最大结果数"},
    }
    assert input_schema["required"] == ["query"]
    assert params == input_schema["properties"]


@pytest.mark.requirement("spec.schema.output")
def test_the_output_schema_says_what_the_tool_returns(search: ToolSpec, bound_action: ToolSpec) -> None:
    assert search.output_schema is not None
    assert search.output_schema["type"] == "object"
    assert bound_action.output_schema is not None
    assert bound_action.output_schema["properties"] == {"result": {"type": "string"}}


@pytest.mark.requirement("spec.docs.docstring")
def test_the_docstring_is_generated_in_google_style(search: ToolSpec) -> None:
    assert search.docstring == inspect.getdoc(search_database)


@pytest.mark.requirement("spec.docs.code")
def test_the_code_is_a_function_definition_with_its_docstring(search: ToolSpec) -> None:
    namespace: dict[str, Any] = {}
    exec(compile(search.code, "<code>", "exec", dont_inherit=True), namespace)
    function = namespace["search_database"]

    assert str(inspect.signature(function)) == "(query: str, limit: int = 10) -> dict"
    assert inspect.getdoc(function) == search.docstring


@pytest.mark.requirement("spec.docs.signature")
def test_a_signature_is_a_call_with_arguments(search: ToolSpec) -> None:
    assert search.signature(query="example", limit=10) == "search_database(query='example', limit=10)"


@pytest.mark.requirement("spec.docs.prompt")
def test_a_prompt_describes_the_tool(search: ToolSpec) -> None:
    prompt = search.to_prompt()

    said = [
        "search_database",
        "在数据库中搜索匹配的记录。",
        "query",
        "搜索查询字符串",
        "limit",
        "返回的最大结果数",
        "10",
    ]
    assert [text for text in said if text not in prompt] == []


@pytest.mark.requirement("spec.export.mcp")
def test_a_tool_is_exported_to_mcp(search: ToolSpec) -> None:
    mcp_tool: MCPTool = search.to_mcp()

    assert isinstance(mcp_tool, MCPTool)
    assert (mcp_tool.name, mcp_tool.description) == ("search_database", "在数据库中搜索匹配的记录。")
    assert (mcp_tool.input_schema, mcp_tool.output_schema) == (search.input_schema, search.output_schema)


@pytest.mark.requirement("spec.export.jsonschema", "spec.export.jsonschema-parameters", "spec.export.jsonschema-strict")
def test_a_tool_is_exported_to_the_flat_json_schema(search: ToolSpec) -> None:
    schema = search.to_jsonschema()

    assert list(schema.items()) == [
        ("type", "function"),
        ("name", "search_database"),
        ("description", "在数据库中搜索匹配的记录。"),
        ("parameters", search.input_schema),
        ("strict", True),
    ]


@pytest.mark.requirement("spec.export.custom-field", "spec.export.replaced-field")
def test_a_keyword_adds_or_replaces_a_field_of_the_json_schema(search: ToolSpec) -> None:
    assert search.to_jsonschema(custom_field="value") == {**search.to_jsonschema(), "custom_field": "value"}
    assert search.to_jsonschema(strict=False) == {**search.to_jsonschema(), "strict": False}


class MyKnowledgeBase(ToolRegistry):
    @reg_toolspec(parse_docstring=True)
    def search(self, query: str, limit: int = 10) -> list:
        """搜索知识库。

        Args:
            query: 搜索查询字符串
            limit: 最大结果数

        Returns:
            list: 搜索结果
        """
        return self._perform_search(query, limit)

    @reg_toolspec(parse_docstring=True)
    def add_item(self, title: str, content: str) -> dict:
        """向知识库添加项目。

        Args:
            title: 项目标题
            content: 项目内容

        Returns:
            dict: 创建的项目详情
        """
        return self._add_to_kb(title, content)

    def _perform_search(self, query: str, limit: int) -> list:
        return [item for item in self.items if query in item["content"]][:limit]

    def _add_to_kb(self, title: str, content: str) -> dict:
        self.items.append({"title": title, "content": content})
        return self.items[-1]

    @property
    def items(self) -> list:
        return self.__dict__.setdefault("_items", [])


@pytest.mark.requirement(
    "spec.registry.mixin",
    "spec.registry.example",
    "spec.registry.to-toolspecs",
    "spec.registry.list-toolspecs",
    "spec.registry.self-bound",
)
def test_marked_methods_of_a_knowledge_base_are_its_tools() -> None:
    kb = MyKnowledgeBase()
    tools = kb.to_toolspecs()
    tool_names = kb.list_toolspecs()

    assert tool_names == ["search", "add_item"]
    assert {name: type(tool) for name, tool in tools.items()} == {"search": ToolSpec, "add_item": ToolSpec}
    assert list(tools["search"].params) == ["query", "limit"]
    assert tools["add_item"](title="热", content="热水") == {"title": "热", "content": "热水"}
    assert tools["search"](query="水") == [{"title": "热", "content": "热水"}]


@pytest.mark.requirement(
    "spec.registry.init-subclass",
    "spec.registry.toolspecs-variable",
    "spec.registry.decorator",
)
def test_marked_methods_are_collected_when_the_class_is_defined_and_stay_methods() -> None:
    assert dict(MyKnowledgeBase._toolspecs) == {
        "search": (MyKnowledgeBase.search, {"parse_docstring": True}),
        "add_item": (MyKnowledgeBase.add_item, {"parse_docstring": True}),
    }
    assert MyKnowledgeBase().search("水") == []


@pytest.mark.requirement("spec.registry.lazy")
def test_a_method_that_cannot_be_a_tool_is_told_when_an_instance_is_first_used() -> None:
    class Connection: ...

    class Files(ToolRegistry):
        @reg_toolspec()
        def read(self, connection: Connection) -> str:
            """Reads."""
            return str(connection)

    assert list(Files._toolspecs) == ["read"]
    with pytest.raises(DefinitionError, match="'connection'"):
        Files()


@pytest.mark.requirement("spec.registry.instances-apart")
def test_two_instances_have_tools_of_their_own() -> None:
    one, other = MyKnowledgeBase(), MyKnowledgeBase()

    one.to_toolspecs()["add_item"](title="热", content="热水")

    assert other.to_toolspecs()["search"](query="水") == []


@pytest.mark.requirement(
    "spec.registry.option-description",
    "spec.registry.option-output-schema",
    "spec.registry.option-examples",
    "spec.from-function.examples",
)
def test_the_decorator_takes_the_options_of_a_tool() -> None:
    examples = [{"arguments": {"text": "a b"}, "result": {"count": 2}}]

    class Words(ToolRegistry):
        @reg_toolspec(
            parse_docstring=True,
            description="自定义描述",
            output_schema={"type": "object", "properties": {"count": {"type": "integer"}}},
            examples=examples,
        )
        def my_tool(self, text: str) -> dict:
            """Counts words.

            Args:
                text: what to count in
            """
            return {"count": len(text.split())}

    tool = Words().to_toolspecs()["my_tool"]

    assert tool.description == "自定义描述"
    assert tool.params == {"text": {"type": "string", "description": "what to count in"}}
    assert tool.output_schema == {"type": "object", "properties": {"count": {"type": "integer"}}}
    assert list(tool.binded.examples) == examples
    for shown in (tool.docstring, tool.to_prompt()):
        assert [line.strip() for line in shown.splitlines()[-2:]] == [">>> my_tool(text='a b')", "{'count': 2}"]
    assert tool(text="a b c") == 3


@pytest.mark.requirement("spec.registry.option-parse-docstring")
@pytest.mark.parametrize(("options", "text"), [({}, "where"), ({"parse_docstring": False}, None)])
def test_the_decorator_says_whether_the_docstring_is_read(options: dict[str, bool], text: str | None) -> None:
    class Files(ToolRegistry):
        @reg_toolspec(**options)
        def listing(self, directory: str) -> list[str]:
            """Lists files.

            Args:
                directory: where
            """
            return [directory]

    tool = Files().to_toolspecs()["listing"]

    assert (tool.description, tool.params["directory"].get("description")) == ("Lists files.", text)


@pytest.mark.requirement("spec.clone.state")
def test_a_clone_has_a_state_of_its_own(bound_action: ToolSpec) -> None:
    new_tool = bound_action.clone()
    new_tool.state["user_id"] = "different_user"

    assert new_tool(action="login") == "User different_user performed: login"
    assert bound_action(action="login") == "User user123 performed: login"
    bound_action.state["user_id"] = "original"
    assert new_tool(action="login") == "User different_user performed: login"


@pytest.mark.requirement("spec.clone.state")
def test_a_clone_shares_no_nested_state_in_either_direction() -> None:
    tool = ToolSpec.from_function(request).bind(param="api_key", state_key="config.key")
    tool.state = {"config": {"key": "first"}}
    clone = tool.clone()

    clone.state["config"]["key"] = "second"
    assert tool(query="a") == "a with first"
    tool.state["config"]["key"] = "third"
    assert clone(query="a") == "a with second"


@pytest.mark.requirement("spec.binded.hidden")
def test_the_bound_tool_has_no_bound_parameters(bound_action: ToolSpec) -> None:
    binded = bound_action.binded

    assert list(binded.input_schema["properties"]) == ["action"]
    assert binded.input_schema["required"] == ["action"]


@pytest.mark.requirement("spec.cache.clear", "spec.cache.automatic")
def test_schemas_follow_the_bindings_and_the_cache_can_be_cleared(bound_action: ToolSpec) -> None:
    def shown() -> list[str]:
        schemas = (bound_action.input_schema, bound_action.to_jsonschema(), bound_action.to_mcp().input_schema)
        texts = (bound_action.docstring, bound_action.code, bound_action.to_prompt())
        return [text for text in map(str, (*schemas, *texts)) if "user_id" in text]

    assert shown() == []
    bound_action.unbind(param="user_id")
    assert len(shown()) == 6
    bound_action.bind(param="user_id", default="user456")
    assert shown() == []

    bound_action._clear_cache()

    assert shown() == []
    assert bound_action(action="login") == "User user456 performed: login"


@pytest.mark.requirement("spec.practice.typed")
def test_type_hints_give_typed_schemas() -> None:
    def search(queries: List[str], filters: List[Dict[str, Any]], limit: int = 10) -> List[Dict[str, Any]]:  # noqa: UP006
        return [{"queries": queries, "filters": filters}] * limit

    tool = ToolSpec.from_function(search)
    objects = {"type": "array", "items": {"type": "object", "additionalProperties": True}}

    assert tool.params == {
        "queries": {"type": "array", "items": {"type": "string"}},
        "filters": objects,
        "limit": {"type": "integer", "default": 10},
    }
    assert tool.output_schema == {"type": "object", "properties": {"result": objects}, "required": ["result"]}
    assert tool.call(queries=["x"], filters=[], limit=1) == [{"queries": ["x"], "filters": []}]


@pytest.mark.requirement("spec.why.type-safety")
def test_an_argument_that_does_not_fit_its_type_hint_never_reaches_the_function() -> None:
    ran: list[int] = []

    def note(limit: int) -> None:
        ran.append(limit)

    tool = ToolSpec.from_function(note)

    for wrong in ("many", None, [1], 1.5):
        result = tool.exec(limit=wrong)
        assert result.failure is not None
        assert (result.failure.kind, result.failure.path) == ("invalid_arguments", "limit")
    assert ran == []
    tool(limit=3)
    assert ran == [3]


@pytest.mark.requirement("spec.practice.untyped")
def test_a_function_without_type_hints_takes_anything() -> None:
    def search(query, limit=10):
        return [query] * limit

    tool = ToolSpec.from_function(search)

    assert tool.params == {"query": {}, "limit": {"default": 10}}
    assert tool.call(query=("a", 1), limit=1) == [("a", 1)]


@pytest.mark.requirement("spec.practice.docstring")
def test_every_part_of_a_docstring_reaches_the_model() -> None:
    def my_tool(param1: str, param2: int = 10) -> dict:
        """工具功能的简要描述。

        如需要可提供更详细的解释。解释目的、
        行为和任何重要注意事项。

        Args:
            param1: param1 的描述,包括有效值或格式
            param2: param2 的描述,包括默认行为

        Returns:
            dict: 返回值结构和含义的描述

        Raises:
            ValueError: 当 param1 无效时
            RuntimeError: 当操作失败时
        """
        return {param1: param2}

    tool = ToolSpec.from_function(my_tool)

    assert tool.docstring == inspect.getdoc(my_tool)


@pytest.mark.requirement("spec.practice.context", "spec.why.dynamic-binding", "spec.core.binds")
def test_context_is_bound_and_the_model_sees_none_of_it() -> None:
    def send(text: str, api_key: str, user_session: dict) -> str:
        return f"{text} by {user_session['user']} with {api_key}"

    tool = ToolSpec.from_function(send)
    tool.bind(param="api_key", state_key="config.api_key")
    tool.bind(param="user_session", state_key="session")
    tool.state = {"config": {"api_key": "k"}, "session": {"user": "Li"}}

    assert tool(text="hello") == "hello by Li with k"
    assert tool.binds == {"api_key": "config.api_key", "user_session": "session"}
    for shown in (tool.to_prompt(), tool.code, tool.docstring, str(tool.to_jsonschema()), str(tool.to_mcp())):
        assert "api_key" not in shown
        assert "user_session" not in shown


@pytest.mark.requirement("spec.practice.registry", "spec.why.discoverable")
def test_a_service_offers_its_marked_methods() -> None:
    class MyService(ToolRegistry):
        @reg_toolspec(parse_docstring=True)
        def tool1(self, text: str) -> str:
            """First."""
            return text.upper()

        @reg_toolspec(parse_docstring=True)
        def tool2(self, text: str) -> str:
            """Second."""
            return text.lower()

    tools = MyService().to_toolspecs()

    assert {name: tool(text="Ab") for name, tool in tools.items()} == {"tool1": "AB", "tool2": "ab"}


@pytest.mark.requirement("spec.reading.mixin")
def test_a_registry_works_beside_another_base_class_without_its_constructor() -> None:
    class Base:
        def __init__(self, name: str) -> None:
            self.name = name

    class Knowledge(Base, ToolRegistry):
        def __init__(self, name: str) -> None:
            self.name = name

        @reg_toolspec()
        def called(self) -> str:
            """Says its name."""
            return self.name

    assert Knowledge("kb").to_toolspecs()["called"]() == "kb"
