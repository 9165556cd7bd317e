"""A rule: the calls that it applies to, and their permission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal, cast, get_args

from toolwire.definition.tool import Permission
from toolwire.permission.condition import OPERATORS, Condition
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Effect, Label
from toolwire.vocabulary.errors import ConfigurationError

STRICTNESS: Mapping[Permission, int] = {"auto": 0, "confirm": 1, "deny": 2}

RuleScope = Literal["workspace", "session", "run"]
SCOPES: tuple[str, ...] = get_args(RuleScope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One call as a policy sees it.

    Attributes:
        arguments: The exact arguments that will run, as plain JSON.
        caller: The caller for which the call is made.
        run_id: The run of the call.
        effects: The effects that the tool declares.
        taints: Labels of the data that the run has read so far.
        is_outside: True if the tool comes from elsewhere, such as an MCP server.
        tool_digest: `sha256:` of the tool's name, description and schemas; empty if no rule needs it.
        typed: The arguments with Decimals, dates, times, durations and bytes as such, which conditions compare by
            value. None if the tool has none.
    """

    arguments: Mapping[str, Any]
    caller: Caller = NOBODY
    run_id: str = ""
    effects: frozenset[Effect] = frozenset()
    taints: frozenset[Label] = frozenset()
    is_outside: bool = False
    tool_digest: str = ""
    typed: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The permission for certain calls of certain tools.

    `Rule(effect="confirm", tool="pay", when=[{"path": "/arguments/amount", "op": ">", "value": 100}])`

    Attributes:
        effect: auto: run the call. confirm: ask a person first. deny: never run it.
        tool: A tool's name or a pattern: `*` for any text, `?` for one character, `[ab]` for one of these. In a pattern
            with `/` they do not match a `/`: `bank/*` means the tools of `bank`.
        when: Conditions on the arguments; all must be true. Also accepts dicts. Stored as a tuple of `Condition`.
        scope: The lifetime of the rule: the workspace, which means for good, a session or one run. A rule that a person
            remembered is of one principal and tenant, whatever its scope.
        run_id: With scope run, the run.
        agent: The agent whose calls the rule applies to. None means all agents; empty means calls without an agent.
        principal: The principal whose calls the rule applies to. None means all; empty means calls without one.
        tenant: The tenant whose calls the rule applies to, as `principal`.
        expires_at: The time when the rule expires: seconds since the epoch, or a datetime with a zone. None means
            never. Stored as seconds.
        optional: True if its tools and parameters need not exist.
        source: The place where the rule was written, for messages.
        note: The reason for the rule, for the person and the log.
        id: A name that identifies the rule.
        match: Calls that the rule must apply to, as `{"tool": ..., "arguments": {...}}`. `tool` may be omitted if the
            rule names one tool.
        not_match: Calls that the rule must not apply to.
        tool_digest: The digest that the tool must have (`ApprovalRequest.tool_digest`); empty allows any.

    Raises:
        ConfigurationError: The effect, tool, scope, time, a condition or an example is invalid.
    """

    effect: Permission
    tool: str
    when: Iterable[Condition | Mapping[str, Any]] = ()
    scope: RuleScope = "workspace"
    run_id: str = ""
    agent: str | None = None
    principal: str | None = None
    tenant: str | None = None
    expires_at: float | datetime | None = None
    optional: bool = False
    source: str = ""
    note: str = ""
    id: str = ""
    match: Iterable[Mapping[str, Any]] = ()
    not_match: Iterable[Mapping[str, Any]] = ()
    tool_digest: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.effect not in STRICTNESS:
            raise ConfigurationError(f"Rule(effect={self.effect!r}): write one of {', '.join(get_args(Permission))}")
        if not self.tool or not isinstance(cast("object", self.tool), str):
            raise ConfigurationError(f"Rule(tool={self.tool!r}): write a tool's name, or '*' for all tools")
        if self.scope not in SCOPES:
            raise ConfigurationError(f"Rule(scope={self.scope!r}): write one of {', '.join(SCOPES)}")
        if self.run_id and self.scope != "run":
            raise ConfigurationError(f"Rule(run_id={self.run_id!r}): write scope='run', or leave it out")
        put(self, "when", tuple(_condition(each) for each in _several("when", self.when)))
        put(self, "match", tuple(_require_call("match", each) for each in _several("match", self.match)))
        put(
            self, "not_match", tuple(_require_call("not_match", each) for each in _several("not_match", self.not_match))
        )
        put(self, "expires_at", _seconds(self.expires_at))

    def __str__(self) -> str:
        named = f"rule {self.id!r}, " if self.id else "rule "
        when = " and ".join(map(str, self.conditions))
        return f"{named}{self.effect} {self.tool!r}" + (f" when {when}" if when else "")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """`when` with its exact type."""
        return cast("tuple[Condition, ...]", self.when)

    @property
    def calls(self) -> tuple[tuple[bool, Mapping[str, Any]], ...]:
        """The examples, each with True if the rule must apply to it."""
        match = cast("tuple[Mapping[str, Any], ...]", self.match)
        not_match = cast("tuple[Mapping[str, Any], ...]", self.not_match)
        return tuple((True, call) for call in match) + tuple((False, call) for call in not_match)

    @property
    def ends_at(self) -> float | None:
        """`expires_at` in seconds since the epoch."""
        return cast("float | None", self.expires_at)

    @property
    def looks_at_calls(self) -> bool:
        """True if the tool's name alone does not decide whether the rule applies."""
        given = (self.agent, self.principal, self.tenant, self.expires_at)
        return bool(self.when or self.run_id or self.tool_digest) or any(one is not None for one in given)

    def fits(self, tool: str) -> bool:
        """True if the rule is for that tool. The exact name matches first, so a name that contains `[` works."""
        if tool == self.tool:
            return True
        if "/" not in self.tool:
            return fnmatchcase(tool, self.tool)
        names, patterns = tool.split("/"), self.tool.split("/")
        return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))

    def holds(self, arguments: Mapping[str, Any], typed: Mapping[str, Any] | None = None) -> bool:
        """True if the conditions hold for these arguments. `typed` is as in `Subject`.

        An auto rule needs every condition to be true. Any other rule applies unless a condition is false.
        """
        if self.effect == "auto":
            return all(condition.holds(arguments, typed) is True for condition in self.conditions)
        return all(condition.holds(arguments, typed) is not False for condition in self.conditions)

    def hits(self, subject: Subject, now: float) -> bool:
        """True if the rule applies to this call of a tool that it fits."""
        return (
            (self.ends_at is None or now < self.ends_at)
            and (self.scope != "run" or self.run_id == subject.run_id)
            and self.agent in (None, subject.caller.agent)
            and self.principal in (None, subject.caller.principal)
            and self.tenant in (None, subject.caller.tenant)
            and self.tool_digest in ("", subject.tool_digest)
            and (not self.when or self.holds(subject.arguments, subject.typed))
        )


def rule_of(given: Rule | Mapping[str, Any], place: str) -> Rule:
    """Converts a mapping into a rule. `place` is the source of the rule, for messages.

    Raises:
        ConfigurationError: A key is unknown or missing, or `Rule` raised it.
    """
    if isinstance(given, Rule):
        return given
    if not isinstance(cast("object", given), Mapping):
        raise ConfigurationError(f"{place}: {given!r} is not a rule: write Rule(...), or a dict with its fields")
    names = [field.name for field in fields(Rule)]
    for key in given:
        if key not in names:
            raise ConfigurationError(f"{place}: unknown key {key!r}{_nearest(key, names)}")
    for known in fields(Rule):
        if known.default is MISSING and known.name not in given:
            raise ConfigurationError(f"{place}: {known.name!r} is not there: {_WANTED[known.name]}")
    for name, kind in _KINDS.items():
        if not isinstance(given.get(name, kind()), kind):
            raise ConfigurationError(f"{place}: {name} = {given[name]!r}: write {_KIND_WORDS[kind]}")
    try:
        rule = Rule(**given)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place}: {error}") from error
    return rule if rule.source else replace(rule, source=place)


_WANTED = {"effect": "write one of auto, confirm, deny", "tool": "write a tool's name, or '*' for all tools"}
_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("scope", "run_id", "agent", "principal", "tenant", "source", "note", "id", "tool_digest"), str),
    "optional": bool,
}
_KIND_WORDS = {str: "a string", bool: "true or false"}
_SPELLINGS: Mapping[str, str] = {
    **dict.fromkeys(("equals", "=", "eq", "is"), "=="),
    **dict.fromkeys(("<>", "ne"), "!="),
    "lt": "<",
    "lte": "<=",
    "=<": "<=",
    "gt": ">",
    "gte": ">=",
    "=>": ">=",
    "not in": "not_in",
    "regex": "matches",
    "like": "matches",
}
"""Spellings of operators elsewhere, mapped to those used here."""


def _condition(given: object) -> Condition:
    if isinstance(given, Condition):
        return given
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"when has {given!r}: write Condition(path='/arguments/amount', op='<=', value=10), or a dict like it"
        )
    keys = cast("Mapping[str, Any]", given)
    for key in keys:
        if key not in ("path", "op", "value"):
            raise ConfigurationError(f"when has the unknown key {key!r}{_nearest(key, ('path', 'op', 'value'))}")
    for key, wanted in (("path", "'/arguments/amount'"), ("op", f"one of {', '.join(OPERATORS)}")):
        if key not in keys:
            raise ConfigurationError(f"when lacks {key!r}: write {wanted}")
    op = keys["op"]
    if op in _SPELLINGS:
        raise ConfigurationError(f"op={op!r}: write {_SPELLINGS[op]!r}")
    return Condition(**keys)


def _several(name: str, given: object) -> tuple[object, ...]:
    if isinstance(given, str | Mapping | Condition) or not isinstance(given, Iterable):
        raise ConfigurationError(f"{name}={given!r}: write a list")
    return tuple(cast("Iterable[object]", given))


def _require_call(name: str, given: object) -> Mapping[str, Any]:
    call: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    if not isinstance(call.get("arguments"), Mapping) or call.keys() - {"tool", "arguments"}:
        raise ConfigurationError(f"{name} has {given!r}: write a call, as {{'arguments': {{'amount': 5}}}}")
    return call


def _seconds(given: object) -> float | None:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ConfigurationError(f"expires_at={given.isoformat()!r}: add the zone, as {given.isoformat()}Z")
        return given.timestamp()
    if given is None or (isinstance(given, int | float) and not isinstance(given, bool)):
        return given
    raise ConfigurationError(f"expires_at={given!r}: write a time with its zone, or seconds since the epoch")


def _nearest(key: object, names: Iterable[str]) -> str:
    near = get_close_matches(str(key), list(names), 1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"


_BOTH = frozenset({"untrusted", "private"})


def gate_reason(subject: Subject) -> str:
    """Returns why a person must decide regardless of the rules; empty if the guard does not apply.

    The guard covers tools that send, in a run that has read both private and untrusted data. It proves nothing: it
    relies on the effects that tools declare, and treats a run as a whole.
    """
    if not subject.taints >= _BOTH:
        return ""
    if "send" in subject.effects:
        return "this run has read private data and untrusted text, and the tool sends data out"
    if subject.is_outside and not subject.effects:
        return "this run has read private data and untrusted text, and this outside tool may send data out"
    return ""
