"""The part of a toolkit that is saved with a session: its active groups, and the names of its tools."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.groups import BASIC, Groups
from toolwire.catalogue.similar_names import suggestion
from toolwire.vocabulary.errors import ConfigurationError

STATE_VERSION = 1
"""Raised when the meaning of a key changes; a state of a higher version is refused."""

_KEYS = ("version", "active_groups", "groups", "tools")
_LOG = logging.getLogger("toolwire.toolkit")


def state_of(catalogue: Catalogue, groups: Groups) -> dict[str, Any]:
    """Returns the state as JSON values: only names. `basic` is always active and is left out."""
    created = [group for group in groups if group.name != BASIC]
    return {
        "version": STATE_VERSION,
        "active_groups": [group.name for group in created if group.active],
        "groups": [group.name for group in created],
        "tools": [entry.name for entry in catalogue],
    }


def load_state(state: Mapping[str, Any], catalogue: Catalogue, groups: Groups) -> None:
    """Switches the groups to their saved state. A newer group stays as it is; missing ones are logged as a warning.

    Raises:
        ConfigurationError: it is not such a state, has a newer version, or an unknown key. Nothing is changed then.
    """
    saved = _check_state(state)
    there = {group.name for group in groups if group.name != BASIC}
    for name in saved["groups"]:
        if name not in there:
            _LOG.warning("the saved toolkit had a group %r, which is not here: it is left out", name)
    for name in saved["tools"]:
        if name not in catalogue:
            near = suggestion(catalogue.nearest(name))
            _LOG.warning("the saved toolkit had a tool %r, which is not here: it is left out%s", name, near)
    active = there.intersection(saved["active_groups"])
    groups.switch(active, active=True)
    groups.switch(there.intersection(saved["groups"]) - active, active=False)


def _check_state(state: Any) -> dict[str, list[str]]:
    if not isinstance(state, Mapping):
        raise ConfigurationError(f"a toolkit's state is a dict as state_dict() gives it, not {state!r:.80}")
    fields = cast("Mapping[str, Any]", state)
    version = fields.get("version")
    if type(version) is not int or version < 1:
        raise ConfigurationError(f"a toolkit's state has a 'version' of 1 or more, not {version!r}")
    if version > STATE_VERSION:
        raise ConfigurationError(
            f"this toolkit's state was saved by a newer toolwire: it has version {version}, and this one reads up to "
            f"{STATE_VERSION}; upgrade toolwire, or start without the state"
        )
    unknown = [key for key in fields if key not in _KEYS]
    if unknown:
        raise ConfigurationError(f"unknown key {unknown[0]!r} in a toolkit's state: it has {', '.join(_KEYS)}")
    return {key: _names(fields, key) for key in _KEYS[1:]}


def _names(fields: Mapping[str, Any], key: str) -> list[str]:
    names = fields.get(key)
    if not isinstance(names, Iterable) or isinstance(names, str | Mapping):
        raise ConfigurationError(f"{key!r} in a toolkit's state must be a list of names, not {names!r:.80}")
    found = list(cast("Iterable[Any]", names))
    if not all(isinstance(name, str) for name in found):
        raise ConfigurationError(f"{key!r} in a toolkit's state must be a list of names, not {found!r:.80}")
    return found
