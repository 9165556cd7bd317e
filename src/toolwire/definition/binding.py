"""Parameters that the host fills in, and the source of their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.definition.shape import MISSING, ArgumentProblem, ParameterKind, Shape
from toolwire.definition.words import nearest_hint
from toolwire.vocabulary.errors import BindingError, BoundValueError, DefinitionError

States = tuple[Mapping[str, Any], ...]
"""The states of a call, a session and a toolkit, in the order of lookup. They are read live at each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The source of one bound parameter's value."""

    keys: tuple[str, ...]
    """The state key, split at its dots.

    Each part is a key in the mapping found by the part before. Empty for a preset, whose value does not depend on
    state.
    """
    default: Any
    """The value if state lacks the key. MISSING makes the call fail instead."""


class Bindings:
    """The bound parameters of one tool, and the state from which each call reads their values.

    Values may be any objects that fit their parameters. They are passed to the function unchanged, and are never copied
    or converted. A preset and a default are checked when they are bound, a value from state by each call that reads it.
    """

    def __init__(
        self,
        *,
        label: str,
        shape: Shape,
        state_of: Bindings | None = None,
    ) -> None:
        """`state_of` are bindings whose state is read live, in place of a state of its own."""
        self._label = label
        self._kinds = shape.kinds
        self._never_visible = shape.never_visible
        self._misfit = shape.misfit
        self.current: Mapping[str, Binding] = {}
        """Each bound parameter.

        The mapping is replaced as a whole and never changed, so that a reader sees one consistent set.
        """
        self._state: dict[str, Any] = {}
        self._state_of = state_of

    @property
    def state(self) -> dict[str, Any]:
        """The live state. The next call sees changes to it, and a replacement of the whole state."""
        return self._state if self._state_of is None else self._state_of.state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        if not isinstance(cast("object", state), dict):
            raise BindingError(f"{self._label}: state must be a dict, not {type(state).__name__}")
        if self._state_of is None:
            self._state = state
        else:
            self._state_of.state = state

    @property
    def binds(self) -> dict[str, str]:
        """Each bound parameter with its state key."""
        return {name: ".".join(binding.keys) for name, binding in self.current.items() if binding.keys}

    @property
    def presets(self) -> dict[str, Any]:
        """Each preset with its value."""
        return {name: binding.default for name, binding in self.current.items() if not binding.keys}

    def preset(self, param: str, value: Any, *, is_more: bool = False) -> None:
        """Hides the parameter and gives it this value permanently. With `is_more`, the value goes into `**more`.

        Raises:
            BindingError: The parameter does not exist, cannot be bound, or does not take the value.
        """
        if not is_more or param in self._kinds or param in self._never_visible:
            self._check(param)
        self._check_value(param, value, "preset")
        self.current = {**self.current, param: Binding(keys=(), default=value)}

    def bind(self, param: str, state_key: str | None = None, default: Any = MISSING) -> None:
        """Hides the parameter and fills it from state. Binding it again replaces the binding.

        `state_key` is the parameter's own name if None; dots in it descend into nested mappings. If state lacks the
        key, `default` is used. Without a default the call fails and names the key.

        Raises:
            BindingError: The parameter does not exist, cannot be bound, or does not take the default.
        """
        self._check(param)
        key = param if state_key is None else state_key
        keys = (param,) if state_key is None else tuple(key.split("."))
        if not all(keys):
            raise BindingError(f"{self._label}: the state key {key!r} has an empty part: write it as 'config.api.key'")
        if default is not MISSING:
            self._check_value(param, default, "default")
        self.current = {**self.current, param: Binding(keys=keys, default=default)}

    def unbind(self, param: str) -> None:
        """Makes the parameter visible again.

        Raises:
            BindingError: The parameter is not bound.
        """
        if param not in self.current:
            bound = ", ".join(self.current) or "none"
            raise BindingError(f"{self._label}: {param!r} is not bound; bound parameters: {bound}")
        self.current = {name: binding for name, binding in self.current.items() if name != param}

    def resolve(
        self, bindings: Mapping[str, Binding], states: States = ()
    ) -> tuple[dict[str, Any], tuple[ArgumentProblem, ...]]:
        """Returns the current values of these bindings, and a problem for each without a value.

        The first of `states` that has the whole key gives the value, then the tool's own state, then the default.

        Raises:
            BoundValueError: A value from a state does not fit its parameter.
        """
        found: dict[str, Any] = {}
        problems: list[ArgumentProblem] = []
        states = (*states, self.state)
        for name, binding in bindings.items():
            value = _look_up(states, binding.keys) if binding.keys else MISSING
            if value is not MISSING:
                self._check_state(name, value, ".".join(binding.keys))
            value = binding.default if value is MISSING else value
            if value is MISSING:
                problems.append(_no_state(name, ".".join(binding.keys)))
            else:
                found[name] = value
        return found, tuple(problems)

    def follow(self, kinds: Mapping[str, ParameterKind], takes: Callable[[str], bool]) -> None:
        """Updates the known parameters of the tool. `takes` tells whether its function accepts another name.

        Raises:
            DefinitionError: A bound parameter is neither known nor accepted.
        """
        self._kinds = kinds
        for name in self.current:
            if name not in kinds and not takes(name):
                raise DefinitionError(
                    f"{self._label}: the bound parameter {name!r} is gone: unbind it, or list it again"
                )

    def copy_to(self, other: Bindings) -> None:
        """Gives another object the same bindings and its own state.

        Dicts, lists, tuples and sets are copied recursively. Any other object, such as a connection, is shared.
        """
        copies: dict[int, Any] = {}
        other._state = _copy(self.state, copies)
        other.current = {
            name: Binding(keys=binding.keys, default=_copy(binding.default, copies)) if binding.keys else binding
            for name, binding in self.current.items()
        }

    def _check_value(self, param: str, value: Any, what: str) -> None:
        wrong = self._misfit(param, value)
        if wrong is not None:
            raise BindingError(f"{self._label}: the {what} of the parameter {param!r} {wrong}. Give one that fits.")

    def _check_state(self, param: str, value: Any, key: str) -> None:
        wrong = self._misfit(param, value)
        if wrong is not None:
            raise BoundValueError(
                f"{self._label}: the parameter {param!r} is bound to {key!r} in the state, and the value there {wrong}."
                " Put one there that fits."
            )

    def _check(self, param: str) -> None:
        if param in self._never_visible:
            raise BindingError(f"{self._label}: {param!r} cannot be bound: {self._never_visible[param]}")
        if param not in self._kinds:
            hint = nearest_hint(param, self._kinds)
            raise BindingError(f"{self._label} has no parameter {param!r}: {hint}")
        if self._kinds[param] in ("var_positional", "var_keyword"):
            raise BindingError(f"{self._label}: {param!r} takes any number of values and cannot be bound")


def _look_up(states: States, keys: tuple[str, ...]) -> Any:
    for state in states:
        value = _value_in(state, keys)
        if value is not MISSING:
            return value
    return MISSING


def _value_in(state: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = state
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return MISSING
        value = cast("Mapping[str, Any]", value)[key]
    return value


def _no_state(name: str, key: str) -> ArgumentProblem:
    message = f"{name!r} is set by the host, but its state has no {key!r}."
    return ArgumentProblem(path=name, kind="no_state", message=message)


def _copy(value: Any, copies: dict[int, Any]) -> Any:
    """Copies exact containers, each once, so that shared and circular references are kept."""
    kind = cast("Any", type(value))
    if id(value) in copies:
        return copies[id(value)]
    if kind is dict:
        copied: Any = {}
        copies[id(value)] = copied
        copied.update({key: _copy(item, copies) for key, item in value.items()})
        return copied
    if kind is list:
        copied = []
        copies[id(value)] = copied
        copied.extend(_copy(item, copies) for item in value)
        return copied
    if kind is set:
        return copies.setdefault(id(value), set(value))
    if kind is tuple:
        return tuple(_copy(item, copies) for item in value)
    return value
