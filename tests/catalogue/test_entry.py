"""A tool as registered."""

from __future__ import annotations

import math
import threading
from enum import Enum
from typing import Any

import pytest

from toolwire.catalogue.entry import Entry
from toolwire.definition.from_function import from_function
from toolwire.vocabulary.errors import ConfigurationError


class Permissions(Enum):
    DENY = "deny"
    ASK = "ask"


def search(query: str) -> str:
    """Searches."""
    return query


def entry(**settings: Any) -> Entry:
    return Entry(name="find", tool=from_function(search), handle=search, **settings)


@pytest.mark.parametrize("given", ["deny", Permissions.DENY])
def test_a_permission_is_one_of_the_words(given: Any) -> None:
    assert (entry(permission=given).permission, entry().permission) == ("deny", None)


@pytest.mark.parametrize("seconds", [0.001, 1, threading.TIMEOUT_MAX])
def test_a_time_limit_is_whatever_a_thread_can_wait_for(seconds: float) -> None:
    assert entry(timeout_s=seconds).timeout_s == seconds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"permission": "ask"}, "tool 'find': permission='ask' is unknown: write 'auto', 'confirm' or 'deny'"),
        (
            {"permission": Permissions.ASK},
            "tool 'find': permission='ask' is unknown: write 'auto', 'confirm' or 'deny'",
        ),
        ({"timeout_s": 0}, "tool 'find': timeout_s=0: give seconds above 0, or None for no limit"),
        ({"timeout_s": -1}, "tool 'find': timeout_s=-1: give seconds above 0, or None for no limit"),
        ({"timeout_s": math.nan}, "tool 'find': timeout_s=nan: give seconds above 0, or None for no limit"),
        ({"timeout_s": math.inf}, "tool 'find': timeout_s=inf: give seconds above 0, or None for no limit"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_registration(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        entry(**settings)
    assert str(caught.value) == message


def test_a_tool_is_described_under_the_name_it_has_here() -> None:
    registered = entry()
    assert (registered.tool_view.name, registered.tool.name) == ("find", "search")
    registered.name = "search"
    assert registered.tool_view is registered.tool
