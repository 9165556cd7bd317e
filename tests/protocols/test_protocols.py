"""Finding a protocol by its name."""

from __future__ import annotations

import pytest

from toolwire.protocols import get, names
from toolwire.vocabulary.errors import ConfigurationError


def test_each_name_gets_the_protocol_that_bears_it() -> None:
    assert [get(name).name for name in names()] == list(names())


def test_an_unknown_name_is_told_which_there_are() -> None:
    with pytest.raises(ConfigurationError) as caught:
        get("toml")
    assert str(caught.value) == f"there is no protocol 'toml': write one of {', '.join(map(repr, names()))}"
