"""The one warning about calls that need a person when nobody answers."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("toolwire.permission")


class NobodyAsked:
    """Warns the host once. A session has one of its own, and a registry or toolkit for calls without a session."""

    def __init__(self) -> None:
        # `next` gives the one item to one thread.
        self._first = iter((True,))

    def warn(self, tool: str, *, is_question: bool = False, has_approver: bool = False) -> None:
        """Names the tool and the cures, at the first call. `is_question`: the tool itself asked a person.

        `has_approver`: one was asked and gave no answer.
        """
        if not next(self._first, False):
            return
        if has_approver:
            _LOG.warning(
                "the tool %r needs a person, and the approver gave no answer, so its call did not run: a console "
                "approver needs a terminal. Give the session store= and decide later, or add a rule that lets it run, "
                "such as Rule(effect='auto', tool=%r). Later calls like this are not logged",
                *(tool, tool),
            )
            return
        if is_question:
            _LOG.warning(
                "the tool %r asks a person, and nobody can be asked, so its call was stopped: give approver=, or give "
                "the session store= and decide later. Later calls like this are not logged",
                tool,
            )
        else:
            _LOG.warning(
                "the tool %r needs a person's approval, and nobody can be asked, so its call did not run: give "
                "approver=, give the session store= and decide later, or add a rule that lets it run, such as "
                "Rule(effect='auto', tool=%r). Later calls like this are not logged",
                *(tool, tool),
            )
