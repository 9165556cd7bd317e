"""Calls of at most 1 MB, made from the schemas of tools: none costs the host more than a processor second or 128 MB.

Run: python -m benchmarks.fuzz_arguments [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

import datetime
import json
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, SecretStr

from benchmarks.fuzzing import LIMIT_BYTES, PROCESSOR_LIMIT_S, run, within_bound
from toolwire import Rule, ToolRegistry, ToolSpec

PERIOD = 2**61 - 1
"""Integers that differ by a multiple of this have one hash."""


@dataclass(frozen=True)
class Point:
    """A place."""

    x: int
    y: float = 0.0


class Node(BaseModel):
    """A tree."""

    model_config = ConfigDict(frozen=True)
    name: str = ""
    weight: Decimal = Decimal(1)
    below: tuple[Node, ...] = ()


class Both(BaseModel):
    """Two conditions."""

    kind: Literal["both"]
    first: Both | Either | int
    second: Both | Either | int = 0


class Either(BaseModel):
    """One of two conditions."""

    kind: Literal["either"]
    first: Both | Either | int
    second: Both | Either | int = 0


def numbers(values: list[int], unique: set[int] | None = None, by_id: dict[int, float] | None = None) -> int:
    """Takes numbers."""
    return len(values) + len(unique or ()) + len(by_id or ())


def texts(text: str, names: dict[str, list[str]] | None = None, kinds: set[Literal["a", "b"]] | None = None) -> int:
    """Takes text."""
    return len(text) + len(names or ()) + len(kinds or ())


def records(nodes: list[Node], points: set[Point] | None = None, tree: Node | None = None) -> int:
    """Takes records."""
    return len(nodes) + len(points or ()) + (tree is not None)


def values(
    any_value: Any = None,
    either: int | float | str | list[int] | dict[str, int] | None = None,
    times: list[datetime.datetime | datetime.timedelta] | None = None,
    ids: frozenset[UUID] | None = None,
    amounts: set[Decimal] | None = None,
    data: bytes = b"",
    secret: SecretStr | None = None,
) -> int:
    """Takes values of every kind."""
    return len([each for each in (any_value, either, times, ids, amounts, data, secret) if each])


def conditions(condition: Both | Either | int, several: list[Both | Either] | None = None) -> int:
    """Takes types that hold themselves."""
    return isinstance(condition, int) + len(several or ())


SPECS = tuple(ToolSpec.from_function(tool) for tool in (numbers, texts, records, values, conditions))


def fuzz(count: int, seed: int, *, limit_s: float = PROCESSOR_LIMIT_S) -> int:
    """How many of `count` calls were valid. Raises for the first one that costs more than it may."""
    chance, registry = random.Random(seed), _registry()
    valid = 0
    for _ in range(count):
        spec = chance.choice(SPECS)
        arguments = Arguments(spec.input_schema, chance).make()
        valid += _check(registry, spec.name, arguments, seed, limit_s)
    return valid


def _registry() -> ToolRegistry:
    """Tools whose calls are judged by their arguments, so that the canonical form of each is made."""
    rules = [
        Rule(effect="deny", tool="*", when=[{"path": "/arguments", "op": "==", "value": {"never": 1}}], optional=True)
    ]
    registry = ToolRegistry(rules=rules)
    for spec in SPECS:
        registry.register(spec)
    return registry


def _check(registry: ToolRegistry, name: str, arguments: dict[str, Any], seed: int, limit_s: float) -> bool:
    def told() -> str:
        shown = json.dumps(arguments)
        return f"{name} of seed {seed}: {len(shown):,} characters, {shown[:400]}"

    return within_bound(lambda: registry.invoke(name, arguments), limit_s=limit_s, told=told).success


class Arguments:
    """Arguments for one schema, of at most `LIMIT_BYTES`: right, wrong, large, deep or made to collide."""

    def __init__(self, schema: dict[str, Any], chance: random.Random) -> None:
        self._root = schema
        self._chance = chance
        # Most calls are small; large ones find costs that grow faster than the input.
        self._left = int(LIMIT_BYTES ** chance.choice((0.3, 0.5, 0.8, 0.95, 1.0)))

    def make(self) -> dict[str, Any]:
        """The arguments of one call."""
        properties: dict[str, Any] = self._root.get("properties", {})
        required = self._root.get("required", ())
        # One parameter gets most of the bytes.
        chosen = sorted(properties, key=lambda _: self._chance.random())[: self._chance.randrange(1, 3)]
        given = {name: self._value(properties[name], 0) for name in dict.fromkeys([*required, *chosen])}
        return self._within(given)

    def _within(self, given: dict[str, Any]) -> dict[str, Any]:
        while len(json.dumps(given)) > LIMIT_BYTES:
            given = {name: _halved(value) for name, value in given.items()}
        return given

    def _value(self, schema: Any, depth: int) -> Any:
        chance = self._chance
        node = self._resolved(schema)
        self._left -= 10
        if self._left < 0:
            return 1
        if chance.random() < 0.03 or depth > 70:
            return self._wrong()
        match node.get("type"):
            case "array" if chance.random() < 0.1:
                # Many members, each of them wrong: each can cost an error.
                return [self._wrong_member()] * (max(self._left, 0) // 4)
            case "array":
                return self._several(lambda: self._value(node.get("items", {}), depth + 1), node.get("items", {}))
            case "object" if "properties" in node:
                names = [
                    name for name in node["properties"] if name in node.get("required", ()) or chance.random() < 0.6
                ]
                return {name: self._value(node["properties"][name], depth + 1) for name in names}
            case "object":
                held = self._several(
                    lambda: self._value(node.get("additionalProperties", {}), depth + 1), {"type": "integer"}
                )
                keys = self._numbers(len(held)) if chance.random() < 0.5 else range(len(held))
                return dict(zip(map(str, keys), held, strict=False))
            case "integer" | "number":
                return self._numbers(1)[-1]
            case "boolean" | "null":
                return chance.choice((True, False, None))
            case "string":
                return self._text()
            case _:
                return self._wrong()

    def _resolved(self, schema: Any) -> dict[str, Any]:
        while isinstance(schema, dict):
            if "$ref" in schema:
                schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
            elif "anyOf" in schema:
                schema = self._chance.choice(schema["anyOf"])
            else:
                return schema
        return {}

    def _several(self, item: Callable[[], Any], schema: dict[str, Any]) -> list[Any]:
        chance = self._chance
        count = min(chance.choice((0, 1, 3, 30, 1_000, 60_000)), max(self._left, 0) // 20)
        self._left -= count * 4
        if count > 30 and "type" in schema and schema["type"] in ("integer", "number"):
            return self._numbers(count)
        if count > 30:
            made = [item() for _ in range(3)]
            count = min(count, 3 * LIMIT_BYTES // len(json.dumps(made)))
            return [made[place % 3] for place in range(count)] if chance.random() < 0.5 else self._alike(count)
        return [item() for _ in range(count)]

    def _alike(self, count: int) -> list[Any]:
        """Many values of one shape whose hashes are equal, for whatever set they end in."""
        numbers = self._numbers(count)
        shape = self._chance.randrange(6)
        if shape == 0:
            return [{"x": number} for number in numbers]
        if shape == 1:
            return [{"name": str(number)} for number in numbers]
        if shape == 2:
            return [str(UUID(int=number % 2**128)) for number in numbers]
        if shape == 3:
            return [[number] for number in numbers]
        return [str(number) for number in numbers]

    def _numbers(self, count: int) -> list[int]:
        chance = self._chance
        step = chance.choice((1, -1, PERIOD, 2**64, 10**30, 10**300))
        start = chance.choice((0, 1, -1, PERIOD, 10**20, 10**4_000, 2**53))
        count = min(count, LIMIT_BYTES // len(str(start + step * max(count, 1))))
        return [start + place * step for place in range(1, count + 1)]

    def _text(self) -> str:
        chance = self._chance
        length = min(chance.choice((0, 1, 8, 300, 5_000, 100_000, 900_000)), max(self._left, 1))
        self._left -= length
        piece = chance.choice(
            ("a", "0", "9", "\ud83d", "\x00", "é", "1e", "\\", '"', "<", "[", "2026-01-01", "eA==", "P1D", "-")
        )
        return (piece * length)[:length]

    def _wrong_member(self) -> Any:
        # An empty object would be right where all fields have a default.
        return self._chance.choice(([], None, "x", [[]], {"x": []}))

    def _wrong(self) -> Any:
        chance = self._chance
        match chance.randrange(7):
            case 0:
                return None
            case 1:
                return self._text()
            case 2:
                value: Any = []
                for _ in range(chance.choice((5, 60, 70, 400))):
                    value = [value] if chance.random() < 0.5 else {"below": [value]}
                return value
            case 3:
                return {str(number): None for number in self._numbers(min(20_000, max(self._left // 30, 1)))}
            case 4:
                return [chance.choice((1, "x", None, 1.5, [], {})) for _ in range(min(50_000, max(self._left // 8, 1)))]
            case 5:
                return chance.choice((float("inf"), float("nan"), 1e308, -0.0, 10**4_290, True))
            case _:
                return self._alike(min(20_000, max(self._left // 30, 1)))


def _halved(value: Any) -> Any:
    if isinstance(value, list):
        return value[: len(value) // 2]
    if isinstance(value, dict):
        return {name: _halved(item) for name, item in list(value.items())[: max(len(value) // 2, 1)]}
    return value[: len(value) // 2] if isinstance(value, str) else 0 if isinstance(value, int) else value


def main() -> None:
    """Fuzzes for ten minutes unless told otherwise; prints how much it tried."""
    logging.getLogger("toolwire").setLevel(logging.CRITICAL)
    tried, seed, valid = run(fuzz, count=50, seconds=600)
    print(f"{tried:,} calls from seed {seed}, {valid:,} of them valid: none cost more than it may")


if __name__ == "__main__":
    main()
