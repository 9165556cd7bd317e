"""A session's language, thought and style reach its prompt; wrong ones are refused when they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

from toolwire import ConfigurationError, Session, ToolRegistry, ToolSpec, protocols


def search(query: str, limit: int = 3) -> str:
    """Searches the catalogue.

    Args:
        query: Words to look for
    """
    return query * limit


TEXT = [name for name in protocols.names() if not protocols.get(name).is_native]
NATIVE = [name for name in protocols.names() if protocols.get(name).is_native]


@pytest.mark.parametrize("protocol", TEXT)
@pytest.mark.parametrize("options", [{"language": "zh"}, {"thought": "full"}, {"language": "zh", "thought": "full"}])
def test_language_and_thought_reach_the_prompt(protocol: str, options: Any) -> None:
    session = Session([search], protocol=protocol, **options)
    prompt = protocols.get(protocol).describe(session.tools, **options)
    assert session.instructions == prompt != Session([search], protocol=protocol).instructions


def test_the_style_reaches_the_prompt() -> None:
    session = Session([search], style="compact")
    prompt = session.instructions
    assert isinstance(prompt, str)
    assert prompt != Session([search]).instructions
    attp: Any = protocols.get("attp")
    assert prompt == attp.describe([search], style="compact")


@pytest.mark.parametrize("protocol", protocols.names())
def test_the_control_without_them_the_prompt_is_the_protocols_own(protocol: str) -> None:
    given: dict[str, Any] = {"language": None, "thought": None, "style": None}
    session = Session([search], protocol=protocol, **given)
    assert session.instructions == protocols.get(protocol).describe(session.tools)


@pytest.mark.parametrize("protocol", TEXT)
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        *(("language", value, "'en', 'zh'") for value in ("fr", "", 3, ["en"])),
        *(("thought", value, "'short', 'full'") for value in ("long", True, {})),
    ],
)
def test_a_wrong_value_is_refused_when_it_is_given(protocol: str, option: str, value: Any, words: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ConfigurationError) as refused:
        Session([search], protocol=protocol, **options)
    assert str(refused.value) == f"{option}={value!r} is unknown: write one of {words}"


def test_a_wrong_style_is_refused_when_it_is_given() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Session([search], style="tiny")  # pyright: ignore[reportArgumentType]
    assert str(refused.value) == "style='tiny' is unknown: write one of 'full', 'compact'"


@pytest.mark.parametrize("protocol", ["xml", "json"])
def test_a_style_is_refused_by_a_protocol_that_has_none(protocol: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Session([search], protocol=protocol, style="compact")
    assert str(refused.value) == f"style='compact': the prompt of the protocol {protocol!r} has no style: leave it out"


@pytest.mark.parametrize("protocol", NATIVE)
@pytest.mark.parametrize("options", [{"language": "zh"}, {"thought": "full"}, {"style": "compact"}])
def test_a_native_protocol_has_no_prompt_to_change_and_says_so(protocol: str, options: Any) -> None:
    ((option, value),) = options.items()
    with pytest.raises(ConfigurationError) as refused:
        Session([search], protocol=protocol, **options)
    assert str(refused.value) == (
        f"{option}={value!r}: the protocol {protocol!r} is native and writes no prompt: leave it out"
    )


class Plain:
    """A protocol of an owner's own, whose prompt has one form."""

    def __getattr__(self, name: str) -> Any:
        return getattr(protocols.get("json"), name)

    def describe(self, tools: Iterable[Any]) -> str:
        return "\n".join(tool.name for tool in tools)


def test_a_protocol_of_ones_own_without_these_options_is_described_and_refuses_them() -> None:
    assert Session([search], protocol=Plain()).instructions == "search"  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as refused:
        Session([search], protocol=Plain(), language="zh")  # type: ignore[arg-type]
    assert str(refused.value) == "language='zh': the prompt of the protocol 'json' has no language: leave it out"


# -- the tools alone, for a template of the owner's own ------------------------------------------------------------


def program_tools() -> list[Any]:
    registry = ToolRegistry()
    registry.register(search)
    registry.enable_code_execution()
    return Session(registry, protocol="json").tools


def text_length(text: str) -> int:
    """Counts the characters."""
    return len(text)


TEXT_LENGTH = ToolSpec.from_function(text_length)
OPTIONS = [{}, {"language": "zh"}]


@pytest.mark.parametrize("protocol", TEXT)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("tools", [[search], [search, TEXT_LENGTH], [], program_tools()], ids=["1", "2", "0", "code"])
def test_the_block_of_tools_is_the_one_of_the_prompt(protocol: str, options: Any, tools: list[Any]) -> None:
    found = protocols.get(protocol)
    block = found.tools_text(tools, **options)
    prompt = found.describe(tools, **options)
    assert (block in prompt, block.strip()) == (True, block)
    assert len(block) < len(prompt)


def test_the_blocks_are_the_tools_and_nothing_else() -> None:
    blocks = {name: protocols.get(name).tools_text([search]) for name in TEXT}
    assert blocks == {
        "attp": (
            "```python\n"
            "def search(query: str, limit: int = 3) -> str:\n"
            '    """\n'
            "    Searches the catalogue.\n"
            "\n"
            "    Args:\n"
            "        query: Words to look for\n"
            '    """\n'
            "    pass\n"
            "```"
        ),
        "xml": (
            "### search\nSearches the catalogue.\n- query (string): Words to look for\n- limit (integer, default 3)"
        ),
        "json": "search(query: string, limit?: integer = 3): Searches the catalogue.\n  query: Words to look for",
    }


def test_a_compact_block_is_that_of_a_compact_prompt() -> None:
    attp: Any = protocols.get("attp")
    block = attp.tools_text([search], style="compact")
    assert block in attp.describe([search], style="compact")
    assert block != attp.tools_text([search])


@pytest.mark.parametrize("protocol", TEXT)
def test_a_block_in_an_unknown_language_is_refused(protocol: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape("language='fr' is unknown: write one of 'en', 'zh'")):
        protocols.get(protocol).tools_text([search], language="fr")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("protocol", NATIVE)
def test_a_native_protocol_has_no_block_and_says_what_to_write(protocol: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        protocols.get(protocol).tools_text([search])
    assert str(refused.value) == (
        f"the protocol {protocol!r} has no text of its tools: its request takes them as a parameter, describe(tools); "
        "for a prompt take 'json', 'xml' or 'attp'"
    )
