"""Real kernels: cells run by nbclient, and cells of a person who answers their input fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.patience import PATIENCE_S


def run_notebook(cells: Sequence[str], folder: Path) -> list[list[Any]]:
    """Runs the cells from top to bottom in the folder, and returns the outputs of each.

    Raises:
        CellExecutionError: A cell raised.
    """
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=int(PATIENCE_S), resources={"metadata": {"path": str(folder)}})
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def printed(outputs: Sequence[Any]) -> str:
    """What the cell printed to its standard output."""
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")


def display_of(outputs: Sequence[Any]) -> dict[str, str]:
    """The forms of the cell's last value, by media type."""
    return dict(outputs[-1].data)


class Page:
    """A notebook's page with a person, who answers each input field by the next text, or interrupts the cell."""

    def __init__(self, kernel: KernelManager, client: BlockingKernelClient) -> None:
        self._kernel = kernel
        self._client = client

    def run(self, cell: str, answers: Sequence[str | Callable[[Page], None]] = (), *, can_ask: bool = True) -> Ran:
        """Runs a cell. An answer that is a function is called with this page, in place of a text."""
        ran, left = Ran(), list(answers)

        def answer(message: dict[str, Any]) -> None:
            ran.questions.append(message["content"]["prompt"])
            given = left.pop(0)
            if isinstance(given, str):
                self._client.input(given)
            else:
                given(self)

        def read(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                ran.text += message["content"]["text"]
            if message["msg_type"] == "error":
                ran.error = message["content"]["ename"]

        self._client.execute_interactive(
            cell, allow_stdin=can_ask, stdin_hook=answer, output_hook=read, timeout=PATIENCE_S
        )
        return ran

    def interrupt(self) -> None:
        self._kernel.interrupt_kernel()


class Ran:
    """What a person saw of a cell: its text, the questions of its input fields, and the name of its exception."""

    def __init__(self) -> None:
        self.text = ""
        self.questions: list[str] = []
        self.error = ""


@contextmanager
def page() -> Iterator[Page]:
    """A page with a kernel of its own."""
    kernel, client = start_new_kernel(startup_timeout=PATIENCE_S)
    try:
        yield Page(kernel, client)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
