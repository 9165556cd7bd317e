"""Reads a callable's signature: parameters with resolved types, presets, and the context parameter."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin

from toolwire.definition.shape import ParameterKind, Spread
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import DefinitionError

if sys.version_info >= (3, 14):
    import annotationlib

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One parameter of a callable."""

    name: str
    kind: ParameterKind
    default: Any
    """The default as written, which may be a pydantic `Field(...)`. EMPTY without a default."""
    annotation: Any
    """The resolved type; EMPTY without one. For `*rest: T` and `**more: T` it is T."""
    unresolved: str
    """The name in the annotation that could not be found. Empty if the annotation was resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parts of a callable's signature that a tool needs."""

    arguments: tuple[Argument, ...]
    """The parameters that a model or a binding can give."""
    context: str | None
    """The parameter annotated with CallContext, or None."""
    presets: frozenset[str]
    """The keyword arguments of functools.partial."""
    names: frozenset[str]
    """All parameters, with those that neither a model nor a binding can give."""
    returns: Any
    """The resolved return type. EMPTY without one, or if a name in it cannot be found."""
    is_async: bool
    """True if a call returns an awaitable or an async generator."""

    @property
    def gives_future(self) -> bool:
        """True if the return annotation is a `concurrent.futures.Future`."""
        kind = get_origin(self.returns) or self.returns
        return not self.is_async and isinstance(kind, type) and issubclass(kind, Future)


def inspect_signature(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """Returns the signature, in which an annotation may be a text or a ForwardRef.

    Raises:
        ValueError: The callable has no signature that Python can read.
        TypeError: The same, or it is not callable.
    """
    if sys.version_info < (3, 14):
        return inspect.signature(function, follow_wrapped=follow_wrapped)
    forward = annotationlib.Format.FORWARDREF
    try:
        return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=forward)
    except Exception as error:
        # These versions run the code of annotations only now, and it may raise anything.
        raise ValueError(f"{type(error).__name__}: {error}") from error


def read_signature(function: Callable[..., Any], label: str) -> Signature:
    """Reads the signature of a callable.

    Raises:
        DefinitionError: The callable has no signature, cannot be called by its signature, or two parameters are
            annotated with CallContext.
    """
    _refuse_uncallable(function, label)
    try:
        signature = inspect_signature(function)
    except Exception as error:  # `__signature__` may be a property of the author's
        if isinstance(function, functools.partial) and _has_signature(function.func):
            raise DefinitionError(
                f"{label}: its functools.partial gives arguments that the function does not take: give those that it "
                "has"
            ) from error
        raise DefinitionError(
            f"{label} has no signature that Python can read: wrap it in a function with annotated parameters"
        ) from error
    _check_wrapper(function, signature, label)
    names = _names_in_sight(function)
    arguments = [_argument(parameter, names) for parameter in signature.parameters.values()]
    contexts = [argument.name for argument in arguments if _is_context(argument.annotation)]
    if len(contexts) > 1:
        raise DefinitionError(f"{label}: {', '.join(contexts)} are all annotated with CallContext: keep one")
    presets = _presets(function)
    return Signature(
        arguments=tuple(item for item in arguments if item.name not in presets and item.name not in contexts),
        context=contexts[0] if contexts else None,
        presets=presets,
        names=frozenset(signature.parameters) | {"self", "cls"},
        returns=_resolve(signature.return_annotation, names)[0],
        is_async=_is_async(function),
    )


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect_signature(function)
    except (ValueError, TypeError):
        return False
    return True


def _refuse_uncallable(function: Callable[..., Any], label: str) -> None:
    """Refuses callables whose signature lacks their own object, or that take no arguments by name."""
    owner = _unbound_from(function)
    if owner:
        instance = owner.lower()
        raise DefinitionError(
            f"{label} is a method of the class {owner} and has no object to work on: register it on an instance, "
            f"{instance} = {owner}(...) and {instance}.{function.__name__}; or mark it with @reg_toolspec and "
            "register the instance; or make it a staticmethod"
        )
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        raise DefinitionError(
            f"{label} is a method of the class {function.__objclass__.__name__} and has no object to work on: wrap it "
            "in a function with annotated parameters"
        )
    is_dispatch = isinstance(function, types.FunctionType) and all(
        hasattr(function, name) for name in ("dispatch", "registry", "register")
    )
    kind = "a functools.singledispatch" if is_dispatch else ""
    kind = "a ufunc of numpy" if type(cast("object", function)).__name__ == "ufunc" else kind
    if kind:
        raise DefinitionError(
            f"{label} is {kind}, which takes arguments by position alone: wrap it in a function with annotated "
            "parameters"
        )


def _unbound_from(function: Any) -> str:
    """Returns the class of a method that is bound to no object; empty for any other callable."""
    if not isinstance(function, types.FunctionType):
        return ""
    path, _, name = function.__qualname__.rpartition(".")
    owner = path.rpartition(".")[2]
    if not path or owner == "<locals>":
        return ""
    first = next(iter(inspect_signature(function).parameters.values()), None)
    if first is None or first.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        return ""
    # In its class's body the class does not exist yet. Later a static method is told apart by its entry there.
    entry = inspect.getattr_static(_find_in_module(path, function.__module__), name, None)
    is_method = entry is function or (entry is None and first.name in ("self", "cls"))
    return owner if is_method or (first.name == "self" and not isinstance(entry, staticmethod)) else ""


def _find_in_module(path: str, module: str) -> Any:
    """Returns the object of that dotted name in the module, or None."""
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = inspect.getattr_static(found, name, None)
    return found


def _check_wrapper(function: Any, signature: inspect.Signature, label: str) -> None:
    """Refuses a wrapper that does not take the arguments of the function behind it, or needs more.

    `functools.wraps` gives a wrapper the signature of that function, whatever the wrapper itself takes.
    """
    while isinstance(function, functools.partial):
        function = cast("Any", function.func)
    if not hasattr(function, "__wrapped__") or "__signature__" in getattr(function, "__dict__", {}):
        return
    try:
        own = inspect_signature(function, follow_wrapped=False).parameters
    except (ValueError, TypeError):
        # A wrapper written in C, such as that of `functools.cache`, passes everything on.
        return
    by_name = {name for name, one in own.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    takes_more = any(one.kind is one.VAR_KEYWORD for one in own.values())
    named = [
        one.name for one in signature.parameters.values() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    untaken = [] if takes_more else [name for name in named if name not in by_name]
    if untaken:
        raise DefinitionError(
            f"{label}: its wrapper does not take {', '.join(map(repr, untaken))} by name, which the wrapped function "
            "has: give the wrapper **kwargs, or write it without functools.wraps, with the parameters of the tool"
        )
    needed = [
        name for name in own if name in by_name and name not in signature.parameters and own[name].default is EMPTY
    ]
    if needed:
        raise DefinitionError(
            f"{label}: its wrapper needs {', '.join(map(repr, needed))}, which the wrapped function lacks: give a "
            "default, or write the wrapper without functools.wraps and bind the parameter"
        )


def plain_function(function: Callable[..., Any]) -> Any:
    """Returns the function behind partials, methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = cast("Callable[..., Any]", function.func)
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = inspect.unwrap(function)
        elif not inspect.isroutine(function) and _own_call(function) is not None:
            function = _own_call(function)
        else:
            return function


def spread_for(arguments: tuple[Argument, ...], context: str | None, function: Callable[..., Any]) -> Spread | None:
    """Returns the way to call the callable with values by name. None if `function(**values)` works."""
    if all(argument.kind in ("either", "keyword_only") for argument in arguments):
        context_kind = inspect_signature(function).parameters[context].kind if context is not None else None
        if context_kind is not inspect.Parameter.POSITIONAL_ONLY:
            return None
    # Only arguments before `*rest` are passed by position, and only if there is a rest after them.
    parameters = list(inspect_signature(function).parameters.values())
    return functools.partial(_spread, [(parameter.name, _KINDS[parameter.kind]) for parameter in parameters])


def _spread(kinds: list[tuple[str, ParameterKind]], function: Callable[..., Any], values: dict[str, Any]) -> Any:
    named = dict(values)
    # Either may be missing, because a tool can leave it out.
    rest: tuple[Any, ...] = next((tuple(named.pop(name, ())) for name, kind in kinds if kind == "var_positional"), ())
    more = next(
        (cast("Mapping[str, Any]", named.pop(name, _NOTHING)) for name, kind in kinds if kind == "var_keyword"),
        _NOTHING,
    )
    positional = [
        named.pop(name)
        for name, kind in kinds
        if name in named and (kind == "positional_only" or (rest and kind == "either"))
    ]
    return function(*positional, *rest, **named, **more)


_NOTHING: Mapping[str, Any] = {}
_KINDS: Mapping[Any, ParameterKind] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional_only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword_only",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}


def _argument(parameter: inspect.Parameter, names: tuple[dict[str, Any], dict[str, Any]]) -> Argument:
    annotation, unresolved = _resolve(parameter.annotation, names)
    return Argument(
        name=parameter.name,
        kind=_KINDS[parameter.kind],
        default=parameter.default,
        annotation=annotation,
        unresolved=unresolved,
    )


def _resolve(annotation: Any, names: tuple[dict[str, Any], dict[str, Any]]) -> tuple[Any, str]:
    """Returns the type and an empty text, or EMPTY and the name that could not be found."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation, ""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(holder, *names, include_extras=True)["it"], ""
    except NameError as error:
        return EMPTY, error.name or str(annotation)
    except Exception:  # noqa: BLE001 - this runs the code of an annotation
        # If it is a type, typing does not accept it, but pydantic may.
        written = annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else annotation
        return (EMPTY, written) if isinstance(written, str) else (annotation, "")


def _names_in_sight(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the globals and locals for a callable's annotations.

    Types defined inside another function are found in its closure, or in that function's frame while it still runs.
    """
    plain = plain_function(function)
    module = vars(sys.modules[plain.__module__]) if getattr(plain, "__module__", None) in sys.modules else {}
    globals_: dict[str, Any] = getattr(plain, "__globals__", module)
    locals_: dict[str, Any] = {}
    if "<locals>" in getattr(plain, "__qualname__", ""):
        frame = inspect.currentframe()
        while frame is not None:
            if frame.f_globals is globals_ and frame.f_locals is not globals_:
                locals_ = {**frame.f_locals, **locals_}
            frame = frame.f_back
    code = getattr(plain, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(plain, "__closure__", None) or (), strict=False):
        try:
            locals_[name] = cell.cell_contents
        except ValueError:
            continue
    locals_.update({parameter.__name__: parameter for parameter in getattr(plain, "__type_params__", ())})
    return globals_, locals_


def _is_context(annotation: Any) -> bool:
    if isinstance(annotation, type):
        return issubclass(annotation, CallContext)
    if get_origin(annotation) in (Annotated, Union, types.UnionType):
        inner = get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
        return any(_is_context(option) for option in inner)
    return False


def _presets(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = cast("Callable[..., Any]", function.func)
    if _awaits(function):
        return True
    return not inspect.isroutine(function) and _awaits(_own_call(function))


def _awaits(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _own_call(instance: Any) -> Any:
    """Returns the `__call__` that the object's class or a parent defines in Python, or None."""
    found = next((vars(kind)["__call__"] for kind in type(instance).__mro__ if "__call__" in vars(kind)), None)
    return found if isinstance(found, types.FunctionType) else None
