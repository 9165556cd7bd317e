"""Names as providers take them, and the way back."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolwire import ConfigurationError
from toolwire.protocols.tool_names import NameMap, property_name, provider_name, tool_name

ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

pieces = st.sampled_from(["_", "__", "dot", "slash", "x5f", "x", "h", ".", "/", "-", "a", "0", "数", " ", ":", "_dot_"])
names = st.one_of(
    st.lists(pieces, min_size=1, max_size=12).map("".join),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=128),
)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("look_up", "look_up"),
        ("look-up", "look-up"),
        ("fs.read", "fs_dot_read"),
        ("repo/issues:list all", "repo_slash_issues_colon_list_space_all"),
        ("7zip", "_x37_zip"),
        ("-v", "_x2d_v"),
        ("查", "_x67e5_"),
        ("a_dot_b", "a_x5f_dot_b"),
        ("a_dot", "a_dot"),
    ],
)
def test_a_name_is_written_so_that_it_can_still_be_read(name: str, written: str) -> None:
    assert provider_name(name) == written
    assert tool_name(written) == name


@given(names)
@example("a_dot_dot_b")
@example("_x5f_x5f_")
@example("a_dot.b")
@example("h" * 50 + "_h0123456789ab")
def test_every_name_is_taken_and_found_again(name: str) -> None:
    written = provider_name(name)
    assert ALLOWED.fullmatch(written)
    assert NameMap([name]).from_provider(written) == name
    assert len(written) == 64 or tool_name(written) == name


@given(st.sets(names, min_size=2, max_size=8))
def test_no_two_names_become_one(found: set[str]) -> None:
    assert len({provider_name(name) for name in found}) == len(found)
    assert len({property_name(name) for name in found}) == len(found)


@given(names)
def test_a_parameters_name_is_letters_digits_and_underscores(name: str) -> None:
    assert PROPERTY.fullmatch(property_name(name))


def test_a_name_that_grows_too_long_is_cut_and_told_apart() -> None:
    first, second = "server." * 12 + "read", "server." * 12 + "write"
    assert provider_name(first)[:50] == provider_name(second)[:50]
    known = NameMap([first, second])
    assert [known.from_provider(provider_name(name)) for name in (first, second)] == [first, second]


def test_a_name_that_a_model_made_up_is_read_back_as_far_as_it_goes() -> None:
    known = NameMap(["text.len"])
    assert known.from_provider("text.len") == "text.len"
    assert known.from_provider("other_dot_tool") == "other.tool"
    assert known.from_provider("half_xd800_") == "half_xd800_"


def test_two_names_that_could_not_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[NameMap.__module__], "provider_name", lambda name: "same")
    known = NameMap(["a", "b"])
    with pytest.raises(ConfigurationError) as caught:
        known.check()
    assert str(caught.value) == "a provider could not tell 'a' and 'b' apart: register one of them under another name"
    # A call by their common name means neither of them.
    assert known.from_provider("same") == "same"
