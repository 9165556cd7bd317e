"""Loads the module that `--tools` names, or explains in one message why it cannot."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from toolwire.cli.exit_codes import ExitCode, Stop


def load(source: str) -> ModuleType:
    """Executes a `.py` file or imports a module, and returns it.

    The file's folder, or for a module the current folder, is added to `sys.path`.

    Raises:
        Stop: The module does not exist, or its code fails.
    """
    if source.endswith(".py") or os.sep in source or Path(source).exists():
        return _load_file(source)
    return _load_module(source)


def _load_file(source: str) -> ModuleType:
    path = Path(source).absolute()
    if path.is_dir():
        raise unusable(f"{source} is a folder", hint="Give a .py file, or the name of a module.")
    if not path.exists():
        raise unusable(f"there is no file {source}")
    if path.suffix != ".py":
        raise unusable(f"{source} is not a Python file", hint="Give a file that ends in .py, or the name of a module.")
    name = _free_name(path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and annotations look up their module by name.
    sys.modules[name] = module
    _put_on_path(path.parent)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _failed(source, str(path), error) from error
    return module


def _load_module(source: str) -> ModuleType:
    if not all(part.isidentifier() for part in source.split(".")):
        raise unusable(f"there is no file {source}, and no module has that name")
    _put_on_path(Path.cwd())
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{source}.".startswith(f"{error.name}."):
            hint = "A file is given with its .py. Modules are looked for in this folder and where Python finds them."
            raise unusable(f"there is no module {error.name}", hint=hint) from error
        raise _failed(source, _origin(source), error) from error
    except (Exception, SystemExit) as error:
        raise _failed(source, _origin(source), error) from error


def _free_name(stem: str) -> str:
    """Returns the file's own name, or a numbered one if another module has it, such as tools.py in a second folder."""
    name, ordinal = stem, 1
    while name in sys.modules or name in sys.stdlib_module_names:
        ordinal += 1
        name = f"{stem}_{ordinal}"
    return name


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _origin(name: str) -> str:
    """Returns the file of a module that failed to import. Empty if the module has no file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec is not None else ""


def _failed(source: str, file: str, error: BaseException) -> Stop:
    if isinstance(error, SyntaxError):
        return unusable(f"{_place(source, file, error.filename, error.lineno)}: {type(error).__name__}: {error.msg}")
    said = "".join(traceback.format_exception_only(error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if frame.filename == file]
    place = _place(source, file, own[-1].filename, own[-1].lineno) if own else source
    if frames and own and frames[-1] is not own[-1]:
        said += f" (raised in {frames[-1].filename}, line {frames[-1].lineno})"
    if isinstance(error, SystemExit):
        hint = 'It ends the process when it is imported: put that under `if __name__ == "__main__":`.'
        return unusable(f"{place}: {said}", hint=hint)
    return unusable(f"{place}: {said}")


def _place(source: str, file: str, where: str | None, line: int | None) -> str:
    """Returns the place of an error, in the named file or in a file that it imports."""
    named = source if where is None or where == file else where
    return f"{named}, line {line}" if line is not None else named


def unusable(message: str, *, hint: str = "") -> Stop:
    """Returns the error that ends the command because its tools are unusable."""
    return Stop(ExitCode.UNUSABLE_TOOLS, f"the tools cannot be loaded: {message}", hint=hint)
