"""An annotation that cannot be resolved is an error of the definition, on every version of Python.

Up to Python 3.13 such an annotation is a text. From 3.14 on it may be code, which runs when the tool is made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from toolwire import DefinitionError, Session, ToolRegistry, ToolSpec

IS_CODE = sys.version_info >= (3, 14)


def function_with(annotation: str, *, returns: str = "None") -> Callable[..., Any]:
    """A function of a module without `from __future__ import annotations`."""
    written, gives = (annotation, returns) if IS_CODE else (repr(annotation), repr(returns))
    source = f"import decimal\ndef pay(amount: {written}) -> {gives}:\n    'Pays.'\n"
    module: dict[str, Any] = {"__name__": "shop"}
    exec(compile(source, "shop.py", "exec", dont_inherit=True), module)
    return module["pay"]


@pytest.mark.parametrize("annotation", ["Missing", "list[Missing]", "Missing | None", "dict[str, Missing | int]"])
@pytest.mark.parametrize(
    "make", [lambda function: ToolRegistry().register(function), lambda function: Session([function])]
)
def test_it_names_the_parameter_and_the_name(make: Callable[[Any], object], annotation: str) -> None:
    with pytest.raises(DefinitionError) as error:
        make(function_with(annotation))
    assert str(error.value) == (
        "tool 'pay': parameter 'amount' is annotated with 'Missing', which is not defined where the function is. "
        "Import it outside `if TYPE_CHECKING`, or let the host give the argument: "
        "tool.bind('amount', default=...)."
    )


def test_an_attribute_that_its_module_lacks_is_named_with_the_module() -> None:
    with pytest.raises(DefinitionError, match=r"parameter 'amount' is annotated with 'decimal\.Nope', which is not"):
        ToolRegistry().register(function_with("decimal.Nope"))


def test_code_that_fails_is_an_error_of_the_definition_too() -> None:
    with pytest.raises(DefinitionError, match="pay") as error:
        ToolRegistry().register(function_with("1 / 0"))
    if IS_CODE:
        assert str(error.value.__cause__) == "ZeroDivisionError: division by zero"


def test_the_host_may_give_such_an_argument() -> None:
    spec = ToolSpec.from_function(function_with("Missing"), name="pay")
    spec.bind("amount", default=3)
    assert spec() is None


def test_what_a_tool_returns_may_be_unresolved() -> None:
    assert ToolSpec.from_function(function_with("int", returns="Missing")).output_schema is None
