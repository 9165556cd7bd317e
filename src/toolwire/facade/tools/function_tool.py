"""`@tool`: makes a function a tool, and leaves it callable as before."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, cast, overload

from toolwire.definition.author_options import FunctionOptions
from toolwire.definition.from_function import from_function
from toolwire.definition.signature import inspect_signature
from toolwire.definition.tool import Tool
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.vocabulary.errors import BindingError

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(ToolSpec, Generic[P, R]):
    """A `ToolSpec` that is called as its function is. `@tool` makes it.

    A call runs the function itself, so type checkers check it, and `await` works if the function is async. Nothing is
    validated or converted at run time: `pay("5")` passes the text. Bound parameters that the call leaves out are filled
    from `state`. A `CallContext` is not: give one, or use `call`.

    `call`, `acall`, `exec`, `aexec` and `run` validate and convert as those of any `ToolSpec`. A model's calls go
    through a registry, a toolkit or a session.
    """

    def __init__(self, tool: Tool) -> None:
        super().__init__(tool)
        # Gives it the function's name, docstring and signature, for `help` and `inspect`.
        update_wrapper(cast("Any", self), self._function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function.

        Raises:
            BindingError: State has no value for a bound parameter, or one that does not fit.
            Exception: The function's own exceptions, such as a TypeError for a missing argument.
        """
        bindings = self._tool.bindings
        if not bindings.current:
            return self._function(*args, **kwargs)
        given = inspect_signature(self._function).bind_partial(*args, **kwargs)
        missing = {name: bound for name, bound in bindings.current.items() if name not in given.arguments}
        values, problems = bindings.resolve(missing)
        if problems:
            raise BindingError(f"tool {self.name!r}: {problems[0].message}")
        given.arguments.update(values)
        return self._function(*given.args, **given.kwargs)

    @property
    def _function(self) -> Callable[P, R]:
        return cast("Callable[P, R]", self._tool.function)


@overload
def tool(func: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[FunctionOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(func: Callable[..., Any] | None = None, /, **options: Unpack[FunctionOptions]) -> Any:
    """Makes a function a tool that is still called as the function, as `@tool` or `@tool(permission="confirm", ...)`.

    Options are those of `ToolSpec.from_function`. The result is a `FunctionTool`: a `ToolSpec` to register and
    describe. `pay(5)` calls the function, without validation; type checkers check the arguments.
    `pay.call(amount="5")` validates and converts first.

    Raises:
        DefinitionError: it cannot become a tool, or an option is unknown. The message names the place and the remedy.
    """

    def decorate(decorated: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool(from_function(decorated, **options))

    return decorate if func is None else decorate(func)
