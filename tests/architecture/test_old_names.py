"""Old public names work at their old place, with a warning that names the new one."""

from __future__ import annotations

from importlib import import_module

import pytest

import toolwire
import toolwire.types
from toolwire.types import ToolwireDeprecationWarning

MOVED = {
    **{f"toolwire.{name}": f"toolwire.{home}.{name}" for name, home in toolwire._MOVED.items()},
    **{f"toolwire.types.{name}": f"toolwire.testing.{name}" for name in toolwire.types._MOVED},
}


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_name_that_moved_is_still_at_its_old_place_with_a_warning(old: str) -> None:
    (module, _, name), home = old.rpartition("."), MOVED[old].rpartition(".")[0]
    with pytest.warns(ToolwireDeprecationWarning) as caught:
        found = getattr(import_module(module), name)
    assert [(str(one.message), one.filename) for one in caught] == [
        (f"{old} is deprecated since 0.1: use {MOVED[old]}", __file__)
    ]
    assert found is getattr(import_module(home), name)
    assert name in import_module(home).__all__
    assert name not in import_module(module).__all__
