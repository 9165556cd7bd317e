"""Parameters that the host fills in: which they are, and where their values come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.definition.shape import MISSING, ArgumentProblem, ParameterKind
from toolwire.definition.words import nearest_hint
from toolwire.vocabulary.errors import BindingError, DefinitionError

States = tuple[Mapping[str, Any], ...]
"""The states of a call, a session and a toolkit, in the order in which they are asked. Live: read at each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where one bound parameter's value comes from."""

    keys: tuple[str, ...]
    """The state key, cut at its dots: each is a key of the mapping that the one before it led to. Empty for a preset,
    which state does not change."""
    default: Any
    """Used while state lacks the key; MISSING when a call fails then."""


class Bindings:
    """The bound parameters of one tool, and the state their values are read from at each call.

    Values may be any objects; they are handed to the function as they are, never copied, converted or validated.
    """

    def __init__(
        self,
        *,
        label: str,
        kinds: Mapping[str, ParameterKind],
        never_visible: Mapping[str, str],
        state_of: Bindings | None = None,
    ) -> None:
        """`state_of` is whose state is read, live, in place of one of its own."""
        self._label = label
        self._kinds = kinds
        self._never_visible = never_visible
        self.current: Mapping[str, Binding] = {}
        """Each bound parameter. Replaced as a whole, never changed: who holds one sees one moment's bindings."""
        self._state: dict[str, Any] = {}
        self._state_of = state_of

    @property
    def state(self) -> dict[str, Any]:
        """The live state: what is changed in it, or set as a whole, is what the next call reads."""
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
        """Hides the parameter and gives it this value for good. `is_more`: it goes into the function's `**more`.

        Raises:
            BindingError: no such parameter, or one that cannot be bound.
        """
        if not is_more or param in self._kinds or param in self._never_visible:
            self._check(param)
        self.current = {**self.current, param: Binding(keys=(), default=value)}

    def bind(self, param: str, state_key: str | None = None, default: Any = MISSING) -> None:
        """Hides the parameter and fills it from state; binding it again replaces how.

        `state_key` is the parameter's own name when None; dots in it descend into nested mappings. While state lacks
        the key, `default` is used; without one the call fails and names the key.

        Raises:
            BindingError: no such parameter, or one that cannot be bound.
        """
        self._check(param)
        key = param if state_key is None else state_key
        keys = (param,) if state_key is None else tuple(key.split("."))
        if not all(keys):
            raise BindingError(f"{self._label}: the state key {key!r} has an empty part: write it as 'config.api.key'")
        self.current = {**self.current, param: Binding(keys=keys, default=default)}

    def unbind(self, param: str) -> None:
        """Shows the parameter again.

        Raises:
            BindingError: it is not bound.
        """
        if param not in self.current:
            bound = ", ".join(self.current) or "none"
            raise BindingError(f"{self._label}: {param!r} is not bound; bound parameters: {bound}")
        self.current = {name: binding for name, binding in self.current.items() if name != param}

    def resolve(
        self, bindings: Mapping[str, Binding], states: States = ()
    ) -> tuple[dict[str, Any], tuple[ArgumentProblem, ...]]:
        """The values that these bindings have now, and a problem for each without a value.

        The first of `states` that has the whole key gives the value, then the tool's own state, then the default.
        """
        found: dict[str, Any] = {}
        problems: list[ArgumentProblem] = []
        states = (*states, self.state)
        for name, binding in bindings.items():
            value = _look_up(states, binding.keys) if binding.keys else MISSING
            value = binding.default if value is MISSING else value
            if value is MISSING:
                problems.append(_no_state(name, ".".join(binding.keys)))
            else:
                found[name] = value
        return found, tuple(problems)

    def follow(self, kinds: Mapping[str, ParameterKind], takes: Callable[[str], bool]) -> None:
        """Knows the tool by these parameters from now on. `takes` says whether its function takes another one.

        Raises:
            DefinitionError: a bound parameter is neither.
        """
        self._kinds = kinds
        for name in self.current:
            if name not in kinds and not takes(name):
                raise DefinitionError(
                    f"{self._label}: the bound parameter {name!r} is gone: unbind it, or list it again"
                )

    def copy_to(self, other: Bindings) -> None:
        """Gives another the same bindings and a state of its own.

        Dicts, lists, tuples and sets are copied all the way down; any other object, a connection say, is the same.
        """
        copies: dict[int, Any] = {}
        other._state = _copy(self.state, copies)
        other.current = {
            name: Binding(keys=binding.keys, default=_copy(binding.default, copies)) if binding.keys else binding
            for name, binding in self.current.items()
        }

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
    """Copies of exact containers, each once: what was shared or circular inside stays so."""
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
