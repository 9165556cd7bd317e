"""Every attack fails against the sandbox, with source checks and without, and succeeds where its wall is taken away."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.attacks.arena import Arena, WasmArena, naive, used_more
from tests.attacks.attack import Attack
from tests.attacks.canaries import Canaries
from tests.attacks.programs import CORPUS
from tests.attacks.zygotes import LAYERS

ALL_LAYERS = " ".join(LAYERS)
NO_WALL_IN_WASM = {
    # The guest's C library has the table of services itself, and asks nobody.
    "sockets: getaddrinfo",
    # The guest's standard streams lead nowhere: tests/sandbox/wasm shows it.
    "descriptors: write to every descriptor",
}


def attacks(*controls: str) -> list[object]:
    """The attacks as parameters; only those with one of these controls, if any are named."""
    return [
        pytest.param(attack, id=str(attack), marks=pytest.mark.threat(attack.threat))
        for attack in CORPUS
        if not controls or attack.control in controls
    ]


@pytest.mark.requirement("ptc.safety.kernel")
@pytest.mark.parametrize("attack", attacks())
def test_an_attack_fails(attack: Attack, arena: Arena) -> None:
    assert arena.run(attack).signs == set()


@pytest.mark.parametrize("attack", attacks()[::4])
def test_it_fails_behind_the_source_checks_too(attack: Attack, arena: Arena) -> None:
    """The checks only refuse more, so a part of the attacks shows that they open nothing."""
    assert arena.run(attack, source_checks=True).signs == set()


@pytest.mark.parametrize("attack", attacks())
def test_an_attack_fails_in_web_assembly(attack: Attack, wasm_arena: WasmArena) -> None:
    assert wasm_arena.run(attack).signs == ({attack.sign} if str(attack) in NO_WALL_IN_WASM else set())


@pytest.mark.parametrize("attack", attacks()[::8])
def test_it_fails_there_behind_the_source_checks_too(attack: Attack, wasm_arena: WasmArena) -> None:
    assert wasm_arena.run(attack, source_checks=True).signs == set()


@pytest.mark.parametrize("attack", attacks("open child", "none"))
def test_an_attack_on_the_kernel_fails_without_namespaces(
    attack: Attack, arena_without: Callable[[str], Arena]
) -> None:
    # The layers that remain in a container that refuses namespaces.
    assert arena_without("namespaces").run(attack).signs == set()


@pytest.mark.parametrize("attack", attacks("open child"))
def test_it_succeeds_in_a_child_without_layers(attack: Attack, arena_without: Callable[[str], Arena]) -> None:
    outcome = arena_without(ALL_LAYERS).run(attack)
    is_expected = os.geteuid() == 0 or not attack.needs_root
    assert (attack.sign in outcome.signs) == is_expected, outcome.results


@pytest.mark.parametrize("attack", attacks("naive host"))
def test_it_succeeds_on_a_naive_host(attack: Attack, canaries: Canaries) -> None:
    assert attack.sign in naive(attack, canaries)


@pytest.mark.parametrize("attack", attacks("higher limits"))
def test_it_goes_on_when_its_limit_is_raised(attack: Attack, arena: Arena) -> None:
    assert attack.higher_limits is not None
    outcome = arena.run(attack, limits=attack.higher_limits)
    assert used_more(outcome.results[0], attack.limits), outcome.results


@pytest.mark.parametrize("attack", attacks("no policy"))
def test_it_succeeds_where_everything_is_permitted(attack: Attack, permissive_arena: Arena) -> None:
    outcome = permissive_arena.run(attack)
    assert attack.sign in outcome.signs, outcome.results


def test_the_corpus_is_wide_and_nearly_all_of_it_has_a_control() -> None:
    families = Counter(attack.family for attack in CORPUS)
    assert len(CORPUS) >= 120
    assert {name: count for name, count in families.items() if count < 8} == {}
    assert len({str(attack) for attack in CORPUS}) == len({attack.source for attack in CORPUS}) == len(CORPUS)
    assert [str(attack) for attack in CORPUS if (attack.control == "none") != bool(attack.why_no_control)] == []
    assert sum(attack.control == "none" for attack in CORPUS) <= 2
