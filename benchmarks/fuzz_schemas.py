"""Schemas mutated from real ones, of at most 1 MB: none costs the host more than a processor second or 128 MB.

Each is defined, called with arguments that are mutated as well, and told in every calling format.
Run: python -m benchmarks.fuzz_schemas [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

import copy
import json
import logging
import random
from collections.abc import Callable
from typing import Any

from tests.definition.json_schema.hostile_schemas import BOMBS
from tests.protocols.tools_corpus import corpus

from benchmarks.fuzzing import LIMIT_BYTES, PROCESSOR_LIMIT_S, run, within_bound
from toolwire import ToolRegistry, ToolSpec, protocols
from toolwire.vocabulary.errors import DefinitionError

_KEYWORDS: tuple[tuple[str, Any], ...] = (
    *(("pattern", text) for text in ("^(a+)+$", r"\w{200}", "(?=a)", "((a{99}){99}){99}", "[", "a" * 5_000)),
    *(("multipleOf", number) for number in (1e-300, 10**300, 0.1, 3)),
    *(("uniqueItems", True), ("minLength", 10**9), ("maxLength", 10**30), ("minItems", 10**6), ("const", [[1] * 999])),
    *(("$ref", "#"), ("$ref", "#/properties/a"), ("$ref", "#/$defs/l0"), ("$dynamicRef", "#x"), ("$anchor", "x")),
    *(("unevaluatedProperties", False), ("additionalProperties", False), ("patternProperties", {"^(a|a)*$": True})),
    *(("enum", list(range(3_000))), ("required", [f"n{n}" for n in range(999)]), ("description", "x" * 20_000)),
    *(("$schema", "http://json-schema.org/draft-07/schema#"), ("$id", "http://example.com/a"), ("type", "array")),
)


def fuzz(count: int, seed: int, *, limit_s: float = PROCESSOR_LIMIT_S) -> int:
    """How many of `count` schemas were taken. Raises for the first one that costs more than it may."""
    chance = random.Random(seed)
    known = [tool.input_schema for tool in corpus()] + [dict(bomb.schema) for bomb in BOMBS.values()]
    values = [dict(bomb.arguments) for bomb in BOMBS.values()]
    return sum(_check(chance, copy.deepcopy(_chosen(chance, known)), values, seed, limit_s) for _ in range(count))


def _chosen(chance: random.Random, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    # A schema of a hundred thousand levels can be neither copied nor written; the suite has it as it is.
    return chance.choice([schema for schema in schemas if _levels(schema) < 300])


def _levels(schema: Any) -> int:
    levels, level = 0, [schema]
    while level and levels < 300:
        level = [inner for node in level if isinstance(node, dict | list) for inner in _inner(node)]
        levels += 1
    return levels


def _has_more_nodes(schema: Any, limit: int) -> bool:
    """True if the schema's text has more values than `limit`. A part that stands twice counts twice."""
    count, waiting = 0, [schema]
    while waiting and count + len(waiting) <= limit:
        count += 1
        waiting.extend(_inner(waiting.pop()))
    return count + len(waiting) > limit


def _check(
    chance: random.Random, schema: dict[str, Any], values: list[dict[str, Any]], seed: int, limit_s: float
) -> bool:
    for _ in range(chance.randrange(6)):
        _mutate(chance, schema)
        # A mutation repeats a part by reference: five of them can make a text of terabytes, which no writer survives.
        if _has_more_nodes(schema, LIMIT_BYTES):
            return False
    if len(json.dumps(schema)) > LIMIT_BYTES:
        return False
    registry = ToolRegistry()

    def cost_of(step: str, do: Callable[[], Any]) -> Any:
        def told() -> str:
            shown = json.dumps(schema)
            return f"{step} of seed {seed}: {len(shown):,} characters, {shown[:400]}"

        return within_bound(do, limit_s=limit_s, told=told)

    spec = ToolSpec.from_jsonschema
    try:
        tool = cost_of(
            "the definition", lambda: spec(name="t", description="Adds.", input_schema=schema, function=_take)
        )
        registry.register(tool)
    except DefinitionError:
        return False
    arguments = copy.deepcopy(chance.choice(values))
    for name in chance.sample(sorted(schema.get("properties", {})), k=min(3, len(schema.get("properties", {})))):
        arguments[name] = chance.choice(list(chance.choice(values).values()) or [1])
    if len(json.dumps(arguments)) <= LIMIT_BYTES:
        cost_of("a call", lambda: registry.invoke("t", arguments))
    for name in chance.sample(protocols.names(), k=2):
        cost_of(f"the description for {name}", lambda name=name: protocols.get(name).describe([tool]))
    return True


def _take(**arguments: Any) -> int:
    return len(arguments)


def _mutate(chance: random.Random, schema: dict[str, Any]) -> None:
    nodes = list(_nodes(schema))
    node = chance.choice(nodes)
    match chance.randrange(5):
        case 0:
            node.update([chance.choice(_KEYWORDS)])
        case 1:
            inner = copy.deepcopy(chance.choice(nodes))
            node[chance.choice(("anyOf", "oneOf", "allOf"))] = [inner] * chance.randrange(1, 40)
        case 2:
            key = chance.choice(("items", "contains", "not", "if", "additionalProperties", "propertyNames"))
            node[key] = copy.deepcopy(chance.choice(nodes))
        case 3 if node:
            node.pop(chance.choice(list(node)))
        case _:
            defs = schema.setdefault("$defs", {})
            key = chance.choice(("anyOf", "allOf", "oneOf", "prefixItems"))
            fan = chance.choice((2, 2, 30))
            for rung in range(chance.choice((4, 30))):
                defs[f"l{rung}"] = {key: [{"$ref": f"#/$defs/l{rung + 1}"}] * fan}
                defs.setdefault(f"l{rung + 1}", {"type": "string"})
            node["$ref"] = "#/$defs/l0"


def _nodes(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    waiting: list[Any] = [schema]
    while waiting and len(found) < 200:
        node = waiting.pop()
        if isinstance(node, dict):
            found.append(node)
        waiting.extend(_inner(node))
    return found


def _inner(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return list(node) if isinstance(node, list) else []


def main() -> None:
    """Fuzzes for ten minutes unless told otherwise; prints how much it tried."""
    logging.getLogger("toolwire").setLevel(logging.ERROR)
    tried, seed, taken = run(fuzz, count=20, seconds=600)
    print(f"{tried:,} schemas from seed {seed}, {taken:,} of them taken: none cost more than it may")


if __name__ == "__main__":
    main()
