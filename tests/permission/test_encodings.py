"""Rules see the values that will run, however the model wrote them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Validated, canonical
from toolwire.permission.policy import Policy, Rule, Subject

TOOL = from_schema(
    "run",
    input_schema={
        "type": "object",
        "properties": {
            "command": {"type": ["string", "array", "object"]},
            "amount": {"type": ["number", "string", "array"]},
            "path": {"type": "string"},
            "url": {"type": "string"},
            "to": {"type": ["string", "array", "object", "null"]},
        },
    },
)
"""A tool that takes nearly everything, as those from outside do."""

RULES = [
    ("command", "contains", "rm -rf"),
    ("amount", ">", 1000),
    ("path", "under", "/etc"),
    ("url", "host_in", ["evil.example", "*.evil.example"]),
    ("to", "==", "mallory"),
]
POLICY = Policy(
    Rule(
        effect="deny",
        tool="run",
        when=[{"path": f"/arguments/{name}", "op": "exists"}, {"path": f"/arguments/{name}", "op": op, "value": value}],
    )
    for name, op, value in RULES
)
NAIVE = ('"command": "rm -rf', '"amount": 5000', '"path": "/etc/', '"url": "https://evil.example', '"to": "mallory"')
"""The text that a check of the raw call would look for."""

U = "\\u00"
ENCODINGS: list[str] = [
    '{"command": "RM -RF /"}',
    '{"command": "Rm -rf /"}',
    '{"command": "rm  -rf /"}',
    '{"command": "rm\\t-rf /"}',
    '{"command": "rm\\n-rf /"}',
    '{"command": "r\\u200bm -rf /"}',
    '{"command": "r\\u00adm -rf /"}',
    '{"command": "rm\\u00a0-rf /"}',
    '{"command": "\\uff52\\uff4d -rf /"}',
    '{"command": "rm\\u2003-rf /"}',
    '{"command": "\\u0072\\u006d -rf /"}',
    '{"command": "x; rm -rf /"}',
    '{"\\u0063ommand": "rm -rf /"}',
    '{ "command" :"rm -rf /"}',
    '{"command":["rm", "-rf", "/"]}',
    '{"command": [["rm -rf /"]]}',
    '{"command": {"line": "rm -rf /"}}',
    '{"command": "ls", "command": "rm -rf /"}',
    '{"command": "\\ufe0frm -rf /"}',
    '{"command": "rm\\u0000-rf /"}',
    '{"command": "rm -\\u2060rf /"}',
    '{"command": "rm -\\ud835\\udc2b\\ud835\\udc1f /"}',
    '{"amount": 5e3}',
    '{"amount": 5000.0}',
    '{"amount":5000}',
    '{"amount": 0.5e4}',
    '{"amount": 50E+2}',
    '{"amount": "5000"}',
    '{"amount": " 5000"}',
    '{"amount": "5,000"}',
    '{"amount": [5000]}',
    '{"\\u0061mount": 5000}',
    '{"amount": 1, "amount": 5000}',
    '{"amount": 1e308}',
    '{"amount": 100000000000000000000000000000000}',
    '{"path": "/etc//passwd", "x": 0}'.replace(', "x": 0', ""),
    '{"path": "//etc/passwd"}',
    '{"path": "/./etc/passwd"}',
    '{"path": "/etc"}',
    '{"path": "/srv/../etc/passwd"}',
    '{"path": "../../etc/passwd"}',
    '{"path": "/ETC/passwd"}',
    '{"path": "/\\u0065tc/passwd"}',
    '{"path": "\\/etc\\/passwd"}',
    '{"path": "/%65tc/passwd"}',
    '{"path": "file:///etc/passwd"}',
    '{"path": "\\\\etc\\\\passwd"}',
    '{"path": "/etc\\u200b/passwd"}',
    '{"url": "HTTPS://EVIL.example/"}',
    '{"url": "https://evil.example./"}',
    '{"url": "https://a.evil.example/"}',
    '{"url": "https://good.example@evil.example/"}',
    '{"url": "https://evil.example:443/"}',
    '{"url": "https:\\/\\/evil.example"}',
    '{"url": "https://evil\\u3002example/"}',
    '{"url": "https://\\u24d4vil.example/"}',
    '{"url": "https://good.example\\\\@evil.example/"}',
    '{"url": " https://evil.example/"}',
    '{"url": "//evil.example/"}',
    '{"to": "Mallory"}',
    '{"to": "mallory "}',
    '{"to":"mallory"}',
    '{"to": ["mallory"]}',
    '{"to": {"name": "mallory"}}',
    '{"to": "mallor\\u0443"}'.replace("\\u0443", "y\\u200d"),
    '{"to": null}',
]


def arguments_of(text: str) -> dict[str, Any]:
    validated = TOOL.validate(json.loads(text))
    assert isinstance(validated, Validated), validated
    return canonical(validated)


@pytest.mark.threat(12)
def test_no_way_to_write_a_call_gets_around_a_rule() -> None:
    judged = {text: POLICY.judge("run", "auto", Subject(arguments=arguments_of(text))).effect for text in ENCODINGS}
    null = '{"to": null}'
    assert {text for text, effect in judged.items() if effect != "deny"} == {null}
    assert len(judged) - 1 >= 60


@pytest.mark.threat(12)
def test_a_rule_on_the_text_of_a_call_is_gone_around_nearly_each_time() -> None:
    assert sum(not any(text in call for text in NAIVE) for call in ENCODINGS) >= 55


@pytest.mark.threat(12)
@pytest.mark.parametrize("text", ENCODINGS)
def test_a_value_similar_to_an_allowed_one_does_not_pass(text: str) -> None:
    allowed = Policy(
        [
            *(
                Rule(effect="auto", tool="run", when=[{"path": f"/arguments/{name}", "op": op, "value": value}])
                for name, op, value in (
                    ("command", "in", ["ls", "pwd"]),
                    ("amount", "<=", 1000),
                    ("path", "under", "/srv"),
                    ("url", "host_in", ["good.example"]),
                    ("to", "in", ["ada", "bob"]),
                )
            )
        ]
    )
    assert allowed.judge("run", "confirm", Subject(arguments=arguments_of(text))).effect == "confirm"


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "ls -l"}',
        '{"amount": 1000}',
        '{"path": "/srv/etc/passwd"}',
        '{"path": "/etcetera"}',
        '{"url": "https://good.example/?u=https://evil.example"}',
        '{"to": "mallory2"}',
        "{}",
    ],
)
def test_an_unrelated_value_is_not_held_back(text: str) -> None:
    assert POLICY.judge("run", "auto", Subject(arguments=arguments_of(text))).effect == "auto"
