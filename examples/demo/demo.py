"""toolwire in five short scenes. Run: make demo

Each scene runs real code: recorded replies of models, tools, a sandbox, and a process that is killed.
"""

import shlex
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path

from toolwire import ProgramResult, SandboxUnavailable, ToolRegistry

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPOSITORY = ROOT / "examples" / "repository"
WIDTH = 100
"""Columns of the output."""

BACK_DOOR = "random._os.read(random._os.open({secret!r}, 0), 99)"
ATTACKS = ("import socket", "open({secret!r}).read()", BACK_DOOR, "random._os.execv('/bin/sh', ['sh'])")
"""Hostile programs. `random` is a module that programs have; inside it is Python's whole `os`, as `_os`."""


def main() -> None:
    has_sandbox = sandbox_found()
    native_calls()
    mistakes()
    if has_sandbox:
        program()
        attacks()
    killed("program" if has_sandbox else "calls")
    tell("\nThat was toolwire. README.md goes on with a loop for your own model. For more recorded replies, run:")
    show(f"{shlex.quote(sys.executable)} examples/repository/replies.py")


def sandbox_found() -> bool:
    """Returns whether this machine can confine programs, and says so if it cannot."""
    try:
        ToolRegistry().run_program("None")
    except SandboxUnavailable as error:
        tell("Scenes 3 and 4 are left out, and scene 5 makes plain calls. This machine has no sandbox for programs:")
        show(str(error))
        return False
    return True


def native_calls() -> None:
    scene(1, "Two calls in OpenAI's format", "ten lines are a whole turn, from Python functions to messages.")
    show((HERE / "first.py").read_text("utf-8"))
    tell("The file holds a response as OpenAI's API sends it. These messages go back to the model:")
    show(output("examples/demo/first.py"))


def mistakes() -> None:
    scene(2, "A model makes mistakes", "it reads all that is wrong, and how to mend it. Nothing has run.")
    registry = ToolRegistry()

    @registry.register
    def book(city: str, nights: int = 1) -> str:
        """Books a hotel."""
        raise AssertionError(f"a wrong call ran: {city}, {nights}")

    for name, arguments in (("bok", {"city": "Oslo"}), ("book", {"town": "Oslo", "nights": "two"})):
        tell(f"The model calls {name!r} with {arguments} and reads:")
        show(registry.invoke(name, arguments).text)


def program() -> None:
    scene(3, "A model writes a program", "one reply makes ten calls, and the model reads only the totals.")
    reply = Path("replies", "loop_over_many_calls.toml")
    show(tomllib.loads((REPOSITORY / reply).read_text("utf-8"))["tool_call"]["code"])
    tell("The program runs in the sandbox. It calls the Python functions of tools.py by their names:")
    arguments = ["run", str(reply), "--tools", "tools.py", "--protocol", "attp"]
    show("$ cd examples/repository")
    show(f"$ toolwire {' '.join(arguments)}\n{output('-m', 'toolwire', *arguments, folder=REPOSITORY)}")


def attacks() -> None:
    scene(4, "Hostile programs", "each attack fails, and the line below it names the wall that stopped it.")
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret.txt")
        secret.write_text("the secret", encoding="utf-8")
        for attack in ATTACKS:
            code = attack.format(secret=str(secret))
            show(code)
            show(f"  {stopped(ToolRegistry().run_program(code))}")
        tell("Plain Python, without the sandbox, runs the third one and reads:")
        show(output("-c", f"import random; print({BACK_DOOR.format(secret=str(secret))})"))


def stopped(ended: ProgramResult) -> str:
    """The wall that stopped a hostile program, with the error that the program got."""
    error = ended.error
    assert error is not None, f"an attack got through: {ended}"
    if error.type == "SourceRefused":
        return f"Wall 1, the check of the source: {error.message}"
    if ended.isolation.level == "wasm":
        assert error.type in ("FileNotFoundError", "AttributeError"), error
        return f"Wall 2, WebAssembly, where there is no such thing: {error.type}"
    assert (error.type, error.message[:9]) == ("PermissionError", "[Errno 1]"), error
    return f"Wall 2, the kernel's filter of system calls (seccomp): {error.message.partition(': ')[0]}"


def killed(form: str) -> None:
    """`form` is that of `bills.py`."""
    scene(5, "Killed while it waits for a person", "the list of payments at the end has each bill once.")
    with tempfile.TemporaryDirectory() as folder:
        payments = Path(folder, "payments.txt")
        command = [sys.executable, str(HERE / "bills.py"), "start", folder, form]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ids = process.stdout.readline().split()
            tell(f"Process {process.pid} runs a reply that pays three bills. Rent is above 100: a person must approve.")
            tell(f"It waits. It has paid: {listed(payments)}.")
            process.kill()
        tell(f"kill -9 {process.pid}: the process ended by signal {-process.returncode}.")
        resume = ["examples/demo/bills.py", "resume", folder, form, *ids]
        tell("A new process opens the same store, the person approves, and the run continues. The model reads:")
        show(output(*resume))
        tell("A third process resumes the same run again. The model reads the same:")
        show(output(*resume))
        tell(f"Payments, all processes together: {listed(payments)}.")


def listed(payments: Path) -> str:
    # Calls of one reply run side by side, so their order differs from run to run.
    return ", ".join(sorted(payments.read_text("utf-8").splitlines()))


def output(*arguments: str, folder: Path = ROOT) -> str:
    """The output of Python with these arguments, in a process of its own."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def scene(number: int, title: str, look: str) -> None:
    print(f"\n== {number}. {title} ==")
    tell(f"Look at this: {look}")


def tell(text: str) -> None:
    print(text, flush=True)


def show(text: str) -> None:
    """Prints code or output, indented, with long lines folded."""
    for line in text.strip("\n").splitlines():
        print(*textwrap.wrap(line, WIDTH, initial_indent="    ", subsequent_indent="      ") or [""], sep="\n")


if __name__ == "__main__":
    main()
