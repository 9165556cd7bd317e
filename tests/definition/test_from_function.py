"""Tools from everything that can be called."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from toolwire.definition.from_function import from_function, tool_of
from toolwire.definition.shape import MISSING, Invalid, Parameter, Validated
from toolwire.definition.tool import Tool
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.results import ToolResult

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes


def search(query: str, limit: int = 10) -> dict[str, Any]:
    """Searches.

    Args:
        query: the words
        limit: how many
    """
    return {"query": query, "limit": limit}


def run(tool: Tool, arguments: dict[str, Any], context: CallContext | None = None) -> Any:
    validated = tool.validate(arguments)
    assert isinstance(validated, Validated), validated
    return tool.invoke(validated, context)


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as refused:
        make()
    assert isinstance(refused.value, TypeError)
    return str(refused.value)


@pytest.mark.requirement("spec.tool.standardises")
def test_a_function_gives_name_description_and_schema() -> None:
    tool = from_function(search)
    assert (tool.name, tool.description, tool.title, tool.permission) == ("search", "Searches.", None, "auto")
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "the words"},
            "limit": {"default": 10, "type": "integer", "description": "how many"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert tool.output_schema == {"type": "object", "additionalProperties": True}
    assert tool.parameters == (
        Parameter(
            name="query",
            program_name="query",
            kind="either",
            required=True,
            default=MISSING,
            schema={"type": "string", "description": "the words"},
            description="the words",
            annotation="str",
        ),
        Parameter(
            name="limit",
            program_name="limit",
            kind="either",
            required=False,
            default=10,
            schema={"default": 10, "type": "integer", "description": "how many"},
            description="how many",
            annotation="int",
        ),
    )
    assert run(tool, {"query": "x"}) == {"query": "x", "limit": 10}


@pytest.mark.requirement("spec.from-function.options")
def test_options_are_kept() -> None:
    tool = from_function(
        search,
        name="find",
        title="Find",
        description="Finds.",
        tags=["a", "b"],
        annotations={"readOnlyHint": True},
        output_schema={"type": "object"},
        permission="confirm",
        examples=["find(query='x')"],
    )
    assert (tool.name, tool.title, tool.description) == ("find", "Find", "Finds.")
    assert (tool.tags, tool.annotations, tool.permission) == ({"a", "b"}, {"readOnlyHint": True}, "confirm")
    assert (tool.output_schema, tool.is_wrapped_output, tool.examples) == (
        {"type": "object"},
        False,
        ("find(query='x')",),
    )


@pytest.mark.requirement("spec.from-function.parse-docstring-off")
def test_without_parsing_the_docstring_its_first_paragraph_is_the_description() -> None:
    tool = from_function(search, parse_docstring=False)
    assert tool.description == "Searches."
    assert [parameter.description for parameter in tool.parameters] == ["", ""]


class Shop:
    """A shop."""

    def __init__(self, city: str) -> None:
        self.city = city

    def sell(self, item: str) -> str:
        """Sells."""
        return f"{item} in {self.city}"

    @classmethod
    def kind(cls, loud: bool) -> str:
        return cls.__name__.upper() if loud else cls.__name__

    @staticmethod
    def add(a: int, b: int) -> int:
        return a + b

    async def order(self, item: str) -> str:
        return item

    def __call__(self, count: int) -> int:
        """Counts."""
        return count


def test_methods_lose_what_they_are_bound_to() -> None:
    shop = Shop("Bern")
    assert run(from_function(shop.sell), {"item": "tea"}) == "tea in Bern"
    assert from_function(shop.sell).name == "sell"
    assert run(from_function(Shop.kind), {"loud": True}) == "SHOP"
    assert run(from_function(Shop.add), {"a": 1, "b": 2}) == 3


def test_a_callable_object_is_called() -> None:
    tool = from_function(Shop("Bern"))
    assert (tool.name, tool.description, run(tool, {"count": 2})) == ("Shop", "Counts.", 2)


def test_a_wrapped_function_keeps_its_signature_and_docstring() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

        return wrapper

    for tool in (from_function(logged(search)), from_function(functools.lru_cache(search))):
        assert (tool.name, tool.description) == ("search", "Searches.")
        assert run(tool, {"query": "x"}) == {"query": "x", "limit": 10}


def test_a_callable_object_without_a_docstring_of_its_call_has_its_classs() -> None:
    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a

    assert from_function(Adder()).description == "Adds."
    assert from_function(functools.partial(Adder(), a=1)).description == "Adds."


def test_a_coroutine_function_in_any_wrapping_is_async() -> None:
    class Caller:
        async def __call__(self, x: int) -> int:
            return x

    async def one(x: int, y: int) -> int:
        return x + y

    assert from_function(one).is_async
    assert from_function(functools.partial(one, 1)).is_async
    assert from_function(functools.partial(functools.partial(one, 1), y=2)).is_async
    assert from_function(Shop("Bern").order).is_async
    assert from_function(Caller()).is_async
    assert from_function(functools.partial(Caller(), 1)).is_async
    assert not from_function(search).is_async
    assert not from_function(Shop("Bern")).is_async


async def test_invoking_an_async_tool_gives_an_awaitable() -> None:
    assert await run(from_function(Shop("Bern").order), {"item": "tea"}) == "tea"


def test_arguments_of_a_partial_are_hidden_and_cannot_be_given() -> None:
    def send(to: str, text: str, sign: str = "me", **more: str) -> str:
        return f"{to}: {text} ({sign}) {more}"

    tool = from_function(functools.partial(send, "boss", sign="bot"))
    assert list(tool.input_schema["properties"]) == ["text", "more"]
    assert run(tool, {"text": "hi"}) == "boss: hi (bot) {}"
    found = tool.validate({"text": "hi", "sign": "x", "to": "y", "more": {"sign": "z"}})
    assert isinstance(found, Invalid)
    assert [(problem.path, problem.kind) for problem in found.problems] == [("sign", "hidden"), ("to", "unexpected")]
    inside = tool.validate({"text": "hi", "more": {"sign": "z"}})
    assert isinstance(inside, Invalid)
    assert [(problem.path, problem.kind) for problem in inside.problems] == [("more.sign", "hidden")]


def test_every_kind_of_parameter_reaches_the_function_as_python_passes_it() -> None:
    def every(a: int, /, b: int, c: int = 3, *rest: int, d: int, e: int = 5, **more: int) -> Any:
        return a, b, c, rest, d, e, more

    tool = from_function(every)
    assert [parameter.kind for parameter in tool.parameters] == [
        "positional_only",
        "either",
        "either",
        "var_positional",
        "keyword_only",
        "keyword_only",
        "var_keyword",
    ]
    assert tool.input_schema["required"] == ["a", "b", "d"]
    assert run(tool, {"a": 1, "b": 2, "d": 4}) == (1, 2, 3, (), 4, 5, {})
    given = {"a": 1, "b": 2, "rest": [7, "8"], "d": 4, "more": {"a": 9, "z": "10"}}
    assert run(tool, given) == (1, 2, 3, (7, 8), 4, 5, {"a": 9, "z": 10})


def test_positional_only_with_defaults_before_rest() -> None:
    def f(p: int, /, q: int = 3, *rest: int, k: int | None = None, **more: str) -> Any:
        return p, q, rest, k, more

    assert run(from_function(f), {"p": 1, "rest": [5]}) == (1, 3, (5,), None, {})
    assert run(from_function(f), {"p": 1}) == (1, 3, (), None, {})


def test_a_context_parameter_is_hidden_and_filled() -> None:
    async def call(name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(True, [name, arguments])

    def with_context(q: str, context: CallContext | None = None, /) -> Any:
        return q, context

    tool = from_function(with_context)
    context = CallContext(call_id="run/1", call=call)
    assert (tool.context_parameter, list(tool.input_schema["properties"])) == ("context", ["q"])
    assert run(tool, {"q": "x"}, context) == ("x", context)
    assert run(tool, {"q": "x"}) == ("x", None)
    found = tool.validate({"q": "x", "context": "forged"})
    assert isinstance(found, Invalid)
    assert [(problem.path, problem.kind) for problem in found.problems] == [("context", "hidden")]


def test_odd_parameter_names_work() -> None:
    def odd(model_config: int, _x: int, schema: int, self: int, args: int, validate: int, copy: int, __v: int) -> Any:
        return model_config, _x, schema, self, args, validate, copy, __v

    names = ["model_config", "_x", "schema", "self", "args", "validate", "copy", "__v"]
    tool = from_function(odd)
    assert list(tool.input_schema["properties"]) == names
    assert run(tool, {name: place for place, name in enumerate(names)}) == tuple(range(8))


def test_types_defined_inside_a_function_are_found() -> None:
    class Row(BaseModel):
        name: str

    def store(rows: list[Row]) -> list[str]:
        return [row.name for row in rows]

    assert run(from_function(store), {"rows": [{"name": "a"}]}) == ["a"]


def test_descriptions_come_from_field_or_annotated_text_and_the_docstring_follows() -> None:
    def f(
        a: Annotated[int, Field(description="field a")],
        b: Annotated[int, "text b"],
        c: int = Field(7, description="field c", ge=1),
        d: Annotated[int, "text d"] = Field(8),
        e: int = Field(default_factory=lambda: 9),
    ) -> Any:
        """F.

        Args:
            a: doc a
            b: doc b
            c: doc c
            d: doc d
            e: doc e
        """
        return a, b, c, d, e

    tool = from_function(f)
    assert [parameter.description for parameter in tool.parameters] == [
        "field a\ndoc a",
        "text b\ndoc b",
        "field c\ndoc c",
        "text d\ndoc d",
        "doc e",
    ]
    assert [parameter.default for parameter in tool.parameters] == [MISSING, MISSING, 7, 8, MISSING]
    assert [parameter.required for parameter in tool.parameters] == [True, True, False, False, False]
    assert run(tool, {"a": 1, "b": 2}) == (1, 2, 7, 8, 9)


def test_titles_are_the_authors_or_none_and_a_property_may_be_called_title() -> None:
    class Book(BaseModel):
        title: str
        author: str = Field(title="Who wrote it")

    def f(book: Book, title: str, year: int = Field(0, title="Year")) -> None: ...

    assert from_function(f).input_schema == {
        "type": "object",
        "properties": {
            "book": {"$ref": "#/$defs/Book"},
            "title": {"type": "string"},
            "year": {"default": 0, "title": "Year", "type": "integer"},
        },
        "required": ["book", "title"],
        "additionalProperties": False,
        "$defs": {
            "Book": {
                "properties": {"title": {"type": "string"}, "author": {"title": "Who wrote it", "type": "string"}},
                "required": ["title", "author"],
                "type": "object",
            }
        },
    }


def test_a_pydantic_error_in_the_body_is_the_tools_own() -> None:
    class Strict(BaseModel):
        n: int

    def body(text: str) -> Strict:
        return Strict.model_validate({"n": text})

    tool = from_function(body)
    validated = tool.validate({"text": "x"})
    assert isinstance(validated, Validated)
    with pytest.raises(ValidationError):
        tool.invoke(validated)


def test_a_models_own_validator_says_what_is_wrong() -> None:
    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("n must be even")
            return n

    def f(even: Even) -> None: ...

    found = from_function(f).validate({"even": {"n": 3}})
    assert isinstance(found, Invalid)
    assert found.text == "'even.n' must be an integer, not 3: n must be even."


def test_tool_of_takes_tools_what_has_one_and_callables() -> None:
    tool = from_function(search)

    class Holder:
        def __tool__(self) -> Tool:
            return tool

    assert tool_of(tool) is tool
    assert tool_of(Holder()) is tool
    assert tool_of(search).name == "search"
    assert refusal(lambda: tool_of(3)) == "3 is not a tool: give a function, a ToolSpec or a BaseTool"


@pytest.mark.requirement("spec.from-function.unknown-option")
def test_an_unknown_option_lists_the_known_ones() -> None:
    known = (
        "parse_docstring, examples, name, title, description, tags, annotations, output_schema, permission, "
        "meta, icons, version, effects, idempotent, labels, reconcile, effects_of"
    )
    assert refusal(lambda: from_function(search, desciption="x")) == (
        f"function 'search': unknown option 'desciption' (did you mean 'description'?): the options are {known}"
    )
    said = refusal(lambda: from_function(search, zzz=1))
    assert said == f"function 'search': unknown option 'zzz': the options are {known}"


@pytest.mark.requirement("spec.create.errors")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: from_function(lambda x: x),
            "a lambda has no name: give name='...', or write it with def",
        ),
        (
            lambda: from_function(Shop),
            "'Shop' is a class: give one of its methods on an instance, or an instance that is callable",
        ),
        (lambda: from_function(3), "3 cannot be called: give a function"),  # pyright: ignore[reportArgumentType]
        (
            lambda: from_function(dict.fromkeys, name="f"),
            None,
        ),
        (
            lambda: from_function(max),
            "tool 'max' has no signature that Python can read: wrap it in a function with annotated parameters",
        ),
        (
            lambda: from_function(search, permission="maybe"),  # pyright: ignore[reportArgumentType]
            "tool 'search': permission='maybe' is unknown: write 'auto', 'confirm' or 'deny'",
        ),
        (lambda: from_function(search, tags="a"), "tool 'search': tags='a' is one string: write tags=['a']"),
        (
            lambda: from_function(search, output_schema=3),  # pyright: ignore[reportArgumentType]
            "tool 'search': output_schema must be a JSON schema as a dict, not 3",
        ),
        (lambda: from_function(search, name=""), "a name is empty: give name='...'"),
    ],
)
def test_a_value_that_cannot_become_a_tool_is_refused_at_once(make: Callable[[], object], message: str | None) -> None:
    if message is None:
        assert isinstance(make(), Tool)
    else:
        assert refusal(make) == message


def test_a_lambda_with_a_name_is_a_tool() -> None:
    assert run(from_function(lambda x: x, name="same"), {"x": [1]}) == [1]


class Database:
    pass


def test_a_type_that_no_model_can_give_is_refused_before_the_first_call() -> None:
    def query(sql: str, db: Database) -> None: ...

    message = (
        "tool 'query': parameter 'db' is annotated Database, which no model can give. Use a JSON type or a model of "
        "JSON types; or let the host give it: tool.bind('db', default=...), or a parameter annotated with CallContext."
    )
    tool = from_function(query)
    assert refusal(tool.verify) == message
    assert refusal(lambda: tool.input_schema) == message
    assert refusal(lambda: tool.validate({"sql": ""})) == message


def test_a_callback_is_refused_when_the_schema_is_needed() -> None:
    def each(items: list[int], action: Callable[[int], int]) -> None: ...

    assert refusal(from_function(each).verify).startswith(
        "tool 'each': parameter 'action' is annotated Callable, part of which no model can give."
    )


def test_a_type_that_is_imported_for_checkers_only_is_named() -> None:
    def pay(amount: OnlyForTypes) -> None: ...

    assert refusal(from_function(pay).verify) == (
        "tool 'pay': parameter 'amount' is annotated with 'OnlyForTypes', which is not defined where the function is. "
        "Import it outside `if TYPE_CHECKING`, or let the host give the argument: tool.bind('amount', default=...)."
    )


class Cat(BaseModel):
    lives: int


class Dog(BaseModel):
    tricks: int


def test_the_error_of_pydantic_for_an_annotation_is_passed_on() -> None:
    def pet(animal: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...

    assert refusal(from_function(pet).verify) == (
        "tool 'pet': parameter 'animal' is annotated dict, part of which no model can give. Use a JSON type or a model "
        "of JSON types; or let the host give it: tool.bind('animal', default=...), or a parameter annotated with "
        "CallContext. (Model 'Cat' needs a discriminator field for key 'kind')"
    )


def test_half_a_surrogate_pair_in_a_type_is_refused_with_the_tool_and_the_parameter() -> None:
    def paint(width: int, colour: Literal["red", "\ud83d"]) -> None: ...

    assert refusal(from_function(paint).verify) == (
        "tool 'paint': parameter 'colour' is annotated Literal['red', '\\ud83d'], part of which no model can give. Use "
        "a JSON type or a model of JSON types; or let the host give it: tool.bind('colour', default=...), or a "
        "parameter annotated with CallContext. (SchemaError: error extracting str '\\ud83d')"
    )


def test_a_pair_of_surrogates_in_a_type_is_one_character() -> None:
    def paint(colour: Literal["red", "\U0001f3a8"]) -> str:
        return colour

    assert run(from_function(paint), {"colour": "\U0001f3a8"}) == "\U0001f3a8"


def test_two_contexts_are_one_too_many() -> None:
    def f(a: CallContext, b: CallContext) -> None: ...

    assert refusal(lambda: from_function(f)) == "tool 'f': a, b are all annotated with CallContext: keep one"


@pytest.mark.parametrize(
    ("returns", "schema", "wrapped"),
    [
        (int, {"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]}, True),
        (dict[str, int], {"additionalProperties": {"type": "integer"}, "type": "object"}, False),
        (dict, {"additionalProperties": True, "type": "object"}, False),
        (
            Awaitable[list[str]],
            {
                "type": "object",
                "properties": {"result": {"items": {"type": "string"}, "type": "array"}},
                "required": ["result"],
            },
            True,
        ),
        (
            Coroutine[Any, Any, bool],
            {"type": "object", "properties": {"result": {"type": "boolean"}}, "required": ["result"]},
            True,
        ),
        (None, None, False),
        (ToolResult, None, False),
        (Any, None, False),
        (Database, None, False),
    ],
)
def test_the_output_schema_is_of_an_object(returns: Any, schema: Any, wrapped: bool) -> None:
    def f() -> None: ...

    f.__annotations__["return"] = returns
    tool = from_function(f)
    assert (tool.output_schema, tool.is_wrapped_output) == (schema, wrapped)


def test_a_returned_model_is_its_own_output_schema() -> None:
    class Node(BaseModel):
        name: str
        children: list[Node] = []

    def f() -> Node: ...  # pyright: ignore[reportReturnType]
    def g() -> list[Node]: ...  # pyright: ignore[reportReturnType]

    fields = {
        "properties": {
            "name": {"type": "string"},
            "children": {"default": [], "items": {"$ref": "#/$defs/Node"}, "type": "array"},
        },
        "required": ["name"],
        "type": "object",
    }
    assert from_function(f).output_schema == {**fields, "$defs": {"Node": fields}}
    assert from_function(g).output_schema == {
        "type": "object",
        "properties": {"result": {"items": {"$ref": "#/$defs/Node"}, "type": "array"}},
        "required": ["result"],
        "$defs": {"Node": fields},
    }


def test_no_return_annotation_promises_nothing() -> None:
    def f(): ...

    assert (from_function(f).output_schema, from_function(f).is_wrapped_output) == (None, False)


async def test_a_context_calls_other_tools_by_its_port() -> None:
    async def call(name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(True, [name, arguments])

    result = await CallContext(call_id="run/1", call=call).call("greet", name="Ada")
    assert result.data == ["greet", {"name": "Ada"}]
