"""Calls by name, from a host, a client or a model: their arguments in the form that the tool takes.

Rules, people, the log and the tool then see that form alone. Programs and tools have Python values, so the calls that
they make themselves do not come here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.selection import Selection
from toolwire.definition.derived import schema_with_root_fields
from toolwire.definition.tool import Tool
from toolwire.runtime.identity import new_id
from toolwire.vocabulary.calls import Problem, Reply, ToolCall, WrittenArguments
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.catalogue.entry import Entry
    from toolwire.invocation.scope import Scope
    from toolwire.permission.explain import Explanation

_LOG = logging.getLogger("toolwire.arguments")
_SCALARS = frozenset({int, float, bool})
_OPENS = frozenset({"{", "[", "`"})


def host_call(
    name: str, arguments: Mapping[str, Any] | None, tools: Catalogue | Selection, *, is_guessed: bool = False
) -> ToolCall:
    """Returns a call that a host makes by name. `is_guessed` is as in `fit_arguments`.

    Raises:
        ConfigurationError: The name is not text, or the arguments are not a mapping.
    """
    check_given(name, arguments)
    entry = tools.find(name)
    if arguments and entry is not None:
        arguments = fit_arguments(arguments, entry.tool, is_guessed=is_guessed)
    return ToolCall(name, arguments, id=new_id("r"))


def check_given(name: object, arguments: object) -> None:
    """Accepts the name and the arguments of a call.

    Raises:
        ConfigurationError: The name is not text, or the arguments are not a mapping, such as a provider's JSON text.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f"a call of {name!r:.80}: give the name of the tool as text")
    if arguments is None or isinstance(arguments, Mapping):
        return
    decode = ". A text of JSON is decoded by json.loads(...)" if isinstance(arguments, str | bytes) else ""
    raise ConfigurationError(
        f"a call of {name!r:.80} with {arguments!r:.80}: give a mapping of names to values, such as {{'city': 'Oslo'}}"
        f"{decode}"
    )


def explain_in(scope: Scope, entry: Entry, arguments: Mapping[str, Any] | None) -> Explanation:
    """Returns the effect of the rules on a host's call in a scope, with what its run has read. Runs nothing.

    Raises:
        ConfigurationError: The arguments are wrong.
    """
    from toolwire.invocation.judge import judge_call, subject_of
    from toolwire.invocation.validate import Prepared, validate
    from toolwire.permission.explain import explain

    prepared = validate(host_call(entry.name, arguments, scope.tools), entry, scope.states)
    if not isinstance(prepared, Prepared):
        raise ConfigurationError(prepared.error or "the arguments are wrong")
    subject, verdict = subject_of(prepared, scope), judge_call(prepared, scope)
    return explain(scope.policy, entry.name, entry.own_permission, subject, verdict)


def fit_arguments(arguments: Mapping[str, Any], tool: Tool, *, is_guessed: bool = False) -> Mapping[str, Any]:
    """Returns the arguments with JSON texts decoded where the tool takes a list or an object and no text.

    `is_guessed` says that they may come from a text that was read without the tool: a number is then also taken for a
    text and a text for a number, where the tool takes nothing else. The repairs are logged.

    Raises:
        ConfigurationError: The arguments are not a mapping.
    """
    check_given(tool.name, arguments)
    given, problems = _fit_and_report(arguments, tool, is_guessed=is_guessed)
    for problem in problems:
        _LOG.info("%s: %s: %s", tool.name, problem.place, problem.message)
    return given


def decode_call(call: ToolCall, tools: Catalogue | Selection) -> ToolCall:
    """Returns the call of a model or a client, with its arguments fitted by `fit_arguments`."""
    entry = tools.find(call.name)
    return call if entry is None else replace(call, arguments=fit_arguments(call.arguments, entry.tool))


def _fit_and_report(
    arguments: Mapping[str, Any], tool: Tool, *, is_guessed: bool
) -> tuple[Mapping[str, Any], tuple[Problem, ...]]:
    is_written = isinstance(arguments, WrittenArguments)
    if not any(_may_change(value, is_any=is_guessed or is_written) for value in arguments.values()):
        return arguments, ()
    schema = _schema_of(tool)
    if schema is None:
        return arguments, ()
    # Imported here: most hosts import no reader before their first reply.
    from toolwire.protocols.reading.conversion import convert_guessed, convert_written
    from toolwire.protocols.reading.repair import decode_json_texts

    if is_written:
        return convert_written(arguments, schema)
    return convert_guessed(arguments, schema) if is_guessed else decode_json_texts(arguments, schema)


def _may_change(value: object, *, is_any: bool) -> bool:
    if type(value) is str:
        return is_any or value.lstrip()[:1] in _OPENS
    return is_any and type(value) in _SCALARS


def decode_reply(reply: Reply, tools: Catalogue | Selection) -> Reply:
    """Returns a reply that a host or a client made, with the JSON texts of its calls decoded and reported."""
    calls, problems = list[ToolCall](), list(reply.problems)
    for call in reply.calls:
        entry = tools.find(call.name)
        given, found = (
            (call.arguments, ()) if entry is None else _fit_and_report(call.arguments, entry.tool, is_guessed=False)
        )
        calls.append(call if given is call.arguments else replace(call, arguments=given))
        problems += found
    return replace(reply, calls=tuple(calls), problems=tuple(problems)) if calls != list(reply.calls) else reply


def _schema_of(tool: Tool) -> Mapping[str, Any] | None:
    """Returns the tool's input schema. None if the tool cannot be described."""
    try:
        return schema_with_root_fields(tool)
    except Exception:  # noqa: BLE001 - an author's `get_parameters` may raise; the call itself reports it
        return None
