"""A session that was made before a fork, as by a web server that loads its application before its workers start."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from benchmarks.kills import in_child

from tests.patience import PATIENCE_S
from tests.session.till import calls, texts
from toolwire import Session, Store
from toolwire.permission.approval import DecisionRefused

CHILDREN = 3
PRICE = calls(("price", {"thing": "tea"}))


@pytest.mark.parametrize("name", [None, "c-17"], ids=["unnamed", "named"])
def test_a_session_has_a_conversation_in_each_child_unless_it_has_a_name(tmp_path: Path, name: str | None) -> None:
    parent, fork = os.getpid(), multiprocessing.get_context("fork")
    all_are_here, answers = fork.Barrier(CHILDREN), fork.SimpleQueue()

    def price(thing: str) -> int:
        """Returns when all children are in a turn, or were refused one."""
        if os.getpid() != parent:
            all_are_here.wait(PATIENCE_S)
        return len(thing)

    def serve() -> None:
        try:
            told = texts(session.run_turn(PRICE).messages)
        except DecisionRefused as refused:
            all_are_here.wait(PATIENCE_S)
            told = [refused.code]
        answers.put((session.conversation, *told))

    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        session = Session([price], protocol="openai", store=store, conversation=name)
        own = session.conversation
        session.run_turn(PRICE)
        children = [in_child(serve) for _ in range(CHILDREN)]
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * CHILDREN
        found = sorted(answers.get() for _ in children)
        conversations = {conversation for conversation, _ in found}
        if name is None:
            assert [told for _, told in found] == ["3"] * CHILDREN
            assert len(conversations | {own}) == CHILDREN + 1
        else:
            # The control: one conversation, which is one process's at a time.
            assert (conversations, [told for _, told in found]) == ({name}, ["3", *["conversation_busy"] * 2])
        assert session.conversation == own
        assert {run.conversation for run in store.runs()} == conversations | {own}
