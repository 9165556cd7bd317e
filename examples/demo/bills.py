"""A run that waits for a person. Each command is a process of its own.

python bills.py start FOLDER program                      pays three bills; the second payment waits for a person
python bills.py resume FOLDER program RUN_ID REQUEST_ID   approves that payment, and finishes the run

`calls` in place of `program` makes the same payments by three calls in OpenAI's format, which need no sandbox.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from toolwire import Session

BILLS = [("water", 40), ("rent", 900), ("power", 60)]
PROGRAM = f"""
[tool_call]
status = "success"
target = "pay three bills"
code = '''
for bill, amount in {BILLS}:
    print(pay(bill, amount))
'''
"""
CALLS = [
    {
        "id": f"call_{bill}",
        "type": "function",
        "function": {"name": "pay", "arguments": json.dumps({"bill": bill, "amount": amount})},
    }
    for bill, amount in BILLS
]
RESPONSE = {"choices": [{"message": {"role": "assistant", "tool_calls": CALLS}, "finish_reason": "tool_calls"}]}
LARGE = {"effect": "confirm", "tool": "pay", "when": [{"path": "/arguments/amount", "op": ">", "value": 100}]}
"""A person must approve each payment above 100."""


def open_session(folder: Path, form: str) -> Session:
    """A session with one tool, which adds each payment to `payments.txt`."""

    def pay(bill: str, amount: int) -> str:
        """Pays a bill."""
        with (folder / "payments.txt").open("a", encoding="utf-8") as file:
            file.write(f"{bill} {amount}\n")
        return f"paid {bill}"

    protocol = "attp" if form == "program" else "openai"
    return Session([pay], protocol=protocol, store=f"sqlite:///{folder / 'runs.db'}", policy=[LARGE])


def start(folder: Path, form: str) -> None:
    """Prints the ids of the run and of its request, and then waits until it is killed, or its reader is gone."""
    reply: Any = PROGRAM if form == "program" else RESPONSE
    turn = open_session(folder, form).run_turn(reply)
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    print(turn.suspended.run_id, request.id, flush=True)
    sys.stdin.read()


def resume(folder: Path, form: str, run_id: str, request_id: str) -> None:
    """Prints the text that the model reads next."""
    decision = {"request_id": request_id, "verdict": "approve"}
    turn = asyncio.run(open_session(folder, form).resume(run_id, [decision]))
    print(turn.text.strip())


if __name__ == "__main__":
    command, folder, *rest = sys.argv[1:]
    {"start": start, "resume": resume}[command](Path(folder), *rest)
