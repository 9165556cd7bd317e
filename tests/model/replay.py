"""Plays recorded replies of a real model through `Session`, and writes the text that the model would read after each.

`replies.jsonl` has one conversation a line, as `make model` saves it. Renew the golden text after a change of what
models read, and look at its diff:

python -m tests.model.replay
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from benchmarks.model.conversation import Outcome, read_next, session_for
from benchmarks.model.tasks import OWN_TASKS, Task, read_tasks

from toolwire.vocabulary.calls import ToolCall

HERE = Path(__file__).parent
RECORDED = HERE / "replies.jsonl"
GOLDEN = HERE / "read.txt"


def recorded() -> list[Outcome]:
    """Returns the recorded conversations."""
    lines = RECORDED.read_text("utf-8").splitlines()
    return [Outcome(**json.loads(line)) for line in lines]


def played() -> str:
    """Returns every reply, and the text that the model reads after it."""
    tasks = {task.id: task for task in read_tasks(OWN_TASKS)}
    return "\n".join(asyncio.run(_conversation(one, tasks[one.task])) for one in recorded())


async def _conversation(conversation: Outcome, task: Task) -> str:
    ran: list[ToolCall] = []
    session = session_for(task, conversation.format.removesuffix("+grammar"), ran)
    # The model had read the prompt, so refusals do not repeat the form of a call.
    assert session.system_prompt
    lines = [f"##### {conversation.format} {task.id}: {task.request}"]
    for reply in conversation.replies:
        before = len(ran)
        turn = await session.turn(reply)
        # The calls of a reply run side by side, in no order.
        made = sorted(f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in ran[before:])
        answer = f"(final) {turn.answer}" if turn.is_final else read_next(turn)
        lines += ["----- reply", reply, "----- ran", *made, "----- read", answer]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Renews the golden text."""
    GOLDEN.write_text(played(), "utf-8")


if __name__ == "__main__":
    main()
