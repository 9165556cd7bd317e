"""Processes of tests that start quickly: each is forked from a server that has imported the modules of the test."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess

MODULES = [
    "pytest",
    "tests.agent.test_processes",
    "tests.fleet.test_going_on",
    "tests.journal.artifacts.test_manager",
    "tests.journal.ledger.test_conversation_processes",
    "tests.session.test_conversations",
    "tests.session.test_kept_variables",
    "tests.soak.killed_prunes",
]
"""Modules whose functions such processes run. A process that imports them itself takes a second of the processor."""


def forked(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Returns a process that has started this work in the environment of today. The first one starts the server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    process = context.Process(target=_work_in, args=(dict(os.environ), work, arguments))
    process.start()
    return process


def _work_in(environment: dict[str, str], work: Callable[..., None], arguments: tuple[object, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)
