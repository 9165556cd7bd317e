"""The options of an agent that are a session's, and the checks of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.session.dialogue import OnUnreadable


class AgentOptions(TypedDict, total=False):
    """The options of `Session` that an agent takes. `caller` and `state` hold for runs that name none."""

    permissions: Mapping[str, Permission] | None
    policy: PolicySource | None
    approver: Approver | None
    programs: bool | None
    limits: Limits | None
    min_isolation: MinIsolation | None
    modules: Iterable[str] | None
    always: Iterable[str] | None
    visible: Visible | None
    caller: Caller | None
    state: Mapping[str, Any] | None
    language: Language | None
    thought: Thought | None
    style: StubStyle | None
    on_unreadable: OnUnreadable
    read_text_calls: bool


def check_options(
    name: object, model: object, budget: object, limit_tokens: object, shorten: object, session: Mapping[str, Any]
) -> None:
    """Refuses options of an agent that do not fit.

    Raises:
        ConfigurationError: One does not.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"Agent({name!r:.80}): give it a name, such as Agent('clerk', model, tools)")
    if model is not None and not (hasattr(model, "protocol") and hasattr(model, "stream")):
        raise ConfigurationError(
            f"Agent({name!r}, {model!r:.80}): give a model, such as OpenAIModel('...') of toolwire.models"
        )
    if not isinstance(budget, Budget):
        raise ConfigurationError(f"Agent(budget={budget!r:.80}): write Budget(turns=20)")
    is_count = isinstance(limit_tokens, int) and not isinstance(limit_tokens, bool) and limit_tokens > 0
    if limit_tokens is not None and not is_count:
        raise ConfigurationError(f"Agent(limit_tokens={limit_tokens!r:.80}): write a number of tokens, or None")
    if shorten is not None and not callable(shorten):
        raise ConfigurationError(f"Agent(shorten={shorten!r:.80}): write a function that takes and returns messages")
    unknown = sorted(set(session) - set(AgentOptions.__annotations__))
    if unknown:
        known = ", ".join(AgentOptions.__annotations__)
        raise ConfigurationError(f"Agent({unknown[0]}=...): it has no such option; those of a session are {known}")
