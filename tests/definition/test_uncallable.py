"""A callable that no call can reach is refused at its definition, with the way to register it."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolwire import DefinitionError, Session, ToolRegistry, ToolSpec, tool


class Service:
    def plain(self, x: int) -> int:
        """Does it."""
        return x

    def odd(this, x: int) -> int:  # pyright: ignore[reportSelfClsParameterName]
        """Does it."""
        return x

    @staticmethod
    def static(x: int) -> int:
        """Does it."""
        return x

    @classmethod
    def of_class(cls, x: int) -> int:
        """Does it."""
        return x

    def __call__(self, x: int) -> int:
        """Does it."""
        return x


def base(x: int) -> int:
    """Does it."""
    return x


def with_host(x: int, *, _host: str) -> int:
    """Does it."""
    return x


@functools.singledispatch
def dispatched(x: int) -> int:
    """Does it."""
    return x


@functools.wraps(base)
def passing(*args: Any, **more: Any) -> int:
    return base(*args, **more)


@functools.wraps(base)
def by_position(*args: Any) -> int:
    return base(*args)


@functools.wraps(with_host)
def hosting(x: int) -> int:
    return with_host(x, _host="h")


@functools.wraps(base)
def demanding(*args: Any, _host: str, **more: Any) -> int:
    return base(*args, **more)


def signed(x: int) -> int:
    return with_host(x, _host="h")


functools.update_wrapper(signed, with_host)
signed.__signature__ = inspect.signature(base)  # type: ignore[attr-defined]

UNBOUND = (
    "tool {!r} is a method of the class Service and has no object to work on: register it on an instance, "
    "service = Service(...) and service.{}; or mark it with @reg_toolspec and register the instance; or make it a "
    "staticmethod"
)
WRAPPER = (
    "its wrapper does not take {} by name, which the wrapped function has: give the wrapper **kwargs, or write it "
    "without functools.wraps, with the parameters of the tool"
)


@pytest.mark.parametrize("define", [ToolSpec.from_function, tool, ToolRegistry().register, lambda one: Session([one])])
@pytest.mark.parametrize("method", [Service.plain, Service.odd])
def test_a_method_without_its_object_is_refused(define: Callable[[Any], Any], method: Any) -> None:
    with pytest.raises(DefinitionError) as caught:
        define(method)
    assert str(caught.value) == UNBOUND.format(method.__name__, method.__name__)


@pytest.mark.parametrize("decorator", [tool, tool(name="go"), ToolRegistry().register])
def test_a_decorator_in_a_class_body_refuses_a_method(decorator: Callable[[Any], Any]) -> None:
    with pytest.raises(DefinitionError, match="is a method of the class Inner and has no object to work on"):

        class Inner:
            @decorator
            def go(self, x: int) -> int:
                return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (dispatched, "takes arguments by position alone: wrap it in a function with annotated parameters"),
        (np.add, "a ufunc of numpy, which takes arguments by position alone"),
        (by_position, WRAPPER.format("'x'")),
        (hosting, WRAPPER.format("'_host'")),
        (functools.partial(by_position), WRAPPER.format("'x'")),
        (
            demanding,
            "its wrapper needs '_host', which the wrapped function lacks: give a default, or write the wrapper",
        ),
    ],
)
def test_a_callable_that_does_not_take_its_arguments_is_refused(function: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        ToolSpec.from_function(function)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        *(Service.static, Service.of_class, Service().plain, Service().odd, Service(), passing, signed),
        *(functools.cache(base), functools.partial(Service.plain, Service()), functools.partial(base)),
    ],
)
def test_a_callable_that_takes_its_arguments_is_a_tool(function: Any) -> None:
    spec = ToolSpec.from_function(function, name="do")
    assert (list(spec.params), spec(x=3)) == (["x"], 3)


def test_a_function_of_c_is_called_by_position() -> None:
    assert ToolSpec.from_function(math.sqrt)(x=4) == 2
