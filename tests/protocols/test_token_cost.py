"""The costs of formats, in the quick form of `make bench-tokens`: one tokenizer, and the claims that the docs make."""

from __future__ import annotations

import pytest
from benchmarks.tokens import call_costs, lookup_costs, prompt_costs, quick_tokenizer

from toolwire.definition.from_function import from_function
from toolwire.protocols import get
from toolwire.protocols.base import Language, Thought
from toolwire.vocabulary.effects import Effect


def test_for_one_call_attp_with_its_thought_costs_more_than_json() -> None:
    costs = {name: row["o200k"] for name, row in call_costs(quick_tokenizer()).items()}
    assert 1 < costs["attp, no thought"] < costs["attp, one-line thought"] < costs["attp, four-line thought"]
    assert costs["attp, one-line thought"] > 1.2
    assert 1 < costs["json, in <tool_call>"] < costs["xml"]


def test_ten_look_ups_by_one_program_save_more_than_seventy_per_cent_of_the_input() -> None:
    costs = {name: row["read"]["o200k"] for name, row in lookup_costs(quick_tokenizer(), 10).items()}
    ways = [name for name in costs if name.endswith("one call a turn")]
    assert len(ways) == 7
    assert {
        name: round(costs["attp, one program"] / costs[name], 2) for name in ways if not _is_saved(costs, name)
    } == {}


def _is_saved(costs: dict[str, float], name: str) -> bool:
    return costs["attp, one program"] < 0.3 * costs[name]


def test_one_look_up_is_cheapest_without_a_program() -> None:
    rows = lookup_costs(quick_tokenizer(), 1)
    assert rows["attp, one program"]["written"]["o200k"] > 2 * rows["json, one call a turn"]["written"]["o200k"]


@pytest.mark.parametrize("name", ["attp", "attp, compact", "xml", "json"])
def test_a_prompt_of_a_hundred_tools_has_at_most_sixty_per_cent_of_the_tokens_of_openai_tools(name: str) -> None:
    assert prompt_costs(quick_tokenizer())[name]["o200k"] <= 0.6


def test_the_compact_style_of_attp_is_the_cheaper_one() -> None:
    costs = prompt_costs(quick_tokenizer())
    assert costs["attp, compact"]["o200k"] < 0.9 * costs["attp"]["o200k"]


def get_weather(city: str, unit: str = "celsius") -> str:
    """Returns today's weather of a city.

    Args:
        city: The city
    """
    return f"{city} {unit}"


ONE_TOOL_TOKENS: list[tuple[str, Language, Thought, int]] = [
    ("attp", "en", "short", 606),
    ("attp", "en", "full", 738),
    ("attp", "zh", "short", 648),
    ("attp", "zh", "full", 801),
    ("xml", "en", "short", 308),
    ("xml", "zh", "short", 324),
    ("json", "en", "short", 236),
    ("json", "zh", "short", 250),
]
"""Most tokens of a prompt for one tool: 5 % more than when it had one example instead of two. `xml` has 20 more for a
filled list.
"""


@pytest.mark.parametrize(("name", "language", "thought", "most"), ONE_TOOL_TOKENS)
@pytest.mark.parametrize("effects", [["read"], []])
def test_a_prompt_of_one_tool_stays_within_its_tokens(
    name: str, language: Language, thought: Thought, most: int, effects: list[Effect]
) -> None:
    tool = from_function(get_weather, effects=effects or None)
    prompt = get(name).describe([tool], language=language, thought=thought)
    assert isinstance(prompt, str)
    assert quick_tokenizer()["o200k"](prompt) <= most
