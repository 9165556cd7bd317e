"""The options of an agent that are a session's, and the checks of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict

from toolwire.agent.result import Budget
from toolwire.catalogue.selection import Visible
from toolwire.definition.tool import Permission
from toolwire.facade.policy_sources import PolicySource
from toolwire.permission.approval import Approver
from toolwire.protocols.attp.prompt import StubStyle
from toolwire.protocols.base import Language, Thought
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import MinIsolation
from toolwire.sandbox.runner import RunnerChoice
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.facade.built_in.kept_variables import KeepVariables
    from toolwire.session.dialogue import OnUnreadable


class AgentOptions(TypedDict, total=False):
    """The options of `Session` that an agent takes. `caller` and `state` hold for runs that name none."""

    permissions: Mapping[str, Permission] | None
    policy: PolicySource | None
    approver: Approver | None
    programs: bool | None
    limits: Limits | None
    min_isolation: MinIsolation | None
    runner: RunnerChoice | None
    modules: Iterable[str] | None
    variables: KeepVariables | None
    always: Iterable[str] | None
    visible: Visible | None
    caller: Caller | None
    state: Mapping[str, Any] | None
    language: Language | None
    thought: Thought | None
    style: StubStyle | None
    on_unreadable: OnUnreadable
    read_text_calls: bool
    ending_line: bool


_OWN = ("instructions", "output", "budget", "limit_tokens", "shorten", "store", "required_tools")
_ELSEWHERE = {
    "protocol": "it belongs to the model, as in OpenAIModel(..., protocol='attp')",
    "conversation": "give it to Agent.run(..., conversation=...)",
    "decisions": "give them to Agent.run(..., decisions=...)",
    "finish": "write output=...",
    "output_type": "write output=...",
    "system_prompt": "write instructions=...",
    "max_turns": "write budget=Budget(turns=...)",
    "turns": "write budget=Budget(turns=...)",
}


def check_options(
    name: object, model: object, budget: object, limit_tokens: object, shorten: object, session: Mapping[str, Any]
) -> None:
    """Refuses options of an agent that do not fit.

    Raises:
        ConfigurationError: One does not.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"Agent({name!r:.80}): give it a name, such as Agent('clerk', model, tools)")
    if model is not None and not all(hasattr(model, part) for part in ("protocol", "price", "stream")):
        raise ConfigurationError(
            f"Agent({name!r}, {model!r:.80}): give a model, such as OpenAIModel('...') of toolwire.models, or an "
            "object with protocol, price and stream"
        )
    if not isinstance(budget, Budget):
        raise ConfigurationError(f"Agent(budget={budget!r:.80}): write Budget(turns=20)")
    is_count = isinstance(limit_tokens, int) and not isinstance(limit_tokens, bool) and limit_tokens > 0
    if limit_tokens is not None and not is_count:
        raise ConfigurationError(f"Agent(limit_tokens={limit_tokens!r:.80}): write a number of tokens, or None")
    if shorten is not None and not callable(shorten):
        raise ConfigurationError(f"Agent(shorten={shorten!r:.80}): write a function that takes and returns messages")
    for name in sorted(set(session) - set(AgentOptions.__annotations__)):
        near = get_close_matches(name, (*_OWN, *AgentOptions.__annotations__), 1)
        advice = _ELSEWHERE.get(name) or (f"did you mean {near[0]!r}?" if near else f"it has {', '.join(_OWN)}, ")
        if not near and name not in _ELSEWHERE:
            advice += f"and of a session {', '.join(AgentOptions.__annotations__)}"
        raise ConfigurationError(f"Agent({name}=...): there is no such option: {advice}")


def check_parts(instructions: object, store: object) -> None:
    """Refuses instructions that are not a text, and a store of another type.

    Raises:
        ConfigurationError: One of them is.
    """
    if not isinstance(instructions, str):
        raise ConfigurationError(f"Agent(instructions={instructions!r:.80}): write a text")
    if not (store is None or isinstance(store, str) or hasattr(store, "hold_conversation")):
        raise ConfigurationError(f"Agent(store={store!r:.80}): give a Store, or a URL such as 'sqlite:///runs.db'")


def check_run(budget: object, caller: object) -> None:
    """Refuses options of a run that do not fit.

    Raises:
        ConfigurationError: One does not.
    """
    if not (budget is None or isinstance(budget, Budget)):
        raise ConfigurationError(f"Agent.run(budget={budget!r:.80}): write Budget(turns=20)")
    if not (caller is None or isinstance(caller, Caller)):
        raise ConfigurationError(f"Agent.run(caller={caller!r:.80}): write Caller(principal='...')")
