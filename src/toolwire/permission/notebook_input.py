"""The input field of a notebook's cell."""

from __future__ import annotations

import builtins
import ctypes
import threading
from collections.abc import Callable
from types import BuiltinFunctionType

NotebookInput = Callable[[str], str]
"""The `input` of the running cell. It asks the person at the notebook, from any thread."""

LOOK_S = 0.1
"""Seconds between two looks at whether the cell has ended."""


def notebook_input() -> NotebookInput | None:
    """Returns the `input` of the cell that runs now; None outside of notebooks.

    A kernel puts its own function in the place of the builtin `input` while a cell runs.
    """
    there = builtins.input
    return None if isinstance(there, BuiltinFunctionType) else there


def type_in_cell(ask: NotebookInput, question: str) -> str:
    """Returns the line that the person types in the cell of `ask`.

    A person who interrupts the cell interrupts its main thread only. Without help the question would wait on in this
    thread, and take the next line that the person types, for another question.

    Raises:
        KeyboardInterrupt: The cell has ended.
        EOFError: The person ended the input.
        NotImplementedError: This notebook takes no input, for example because no one is there.
    """
    asking, is_over = threading.get_ident(), threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_S):
            if builtins.input is not ask:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(asking), ctypes.py_object(KeyboardInterrupt))
                return

    watcher = threading.Thread(target=watch, name="toolwire-cell", daemon=True)
    watcher.start()
    try:
        return ask(question)
    finally:
        is_over.set()
        watcher.join()
