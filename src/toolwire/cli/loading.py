"""Loads the modules that `--tools` names, and collects their tools and those of `--config` into one registry."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import toolwire
import toolwire.tools
import toolwire.types
from toolwire.cli.exit_codes import ExitCode, Stop, wrong_usage

if TYPE_CHECKING:
    from toolwire.mcp.config import ReadServers
    from toolwire.types import Approver, McpServerProblem

_LOG = logging.getLogger("toolwire.cli")

_WHAT_COUNTS = (
    "These count as tools: public functions with a docstring that the module defines itself, ToolSpecs, instances of "
    "BaseTool and its own classes of that kind, or one ToolRegistry. With __all__, only the names in it."
)


_NAMED = 5
"""Names of imported functions that a message shows."""


def registry_of(sources: Iterable[str], *, approver: Approver | None = None) -> toolwire.ToolRegistry:
    """Returns a registry with the tools of all sources, or the registry that a source defines, with its rules.

    `approver` is asked about calls that need approval, except if a registry of a source has an approver of its own.

    Raises:
        Stop: A source cannot be loaded, has no tools or an invalid tool, or two tools have the same name.
    """
    loaded = [(source, _load(source)) for source in dict.fromkeys(sources)]
    registry = _find_registry(loaded)
    if registry is None:
        return _new_registry(loaded, approver)
    if approver is not None:
        with suppress(toolwire.ConfigurationError):
            registry.configure(approver=approver)
    return registry


def add_servers(
    registry: toolwire.ToolRegistry, config: Path, pins: Path | None = None, wait_s: float | None = None
) -> bool:
    """Adds the tools of the servers in a file. True if all of its servers can be used; warnings say why not.

    `wait_s` is that of `registry.mcp.add`.

    Raises:
        Stop: The file cannot be used.
    """
    with wrong_usage(toolwire.ConfigurationError, toolwire.RegistrationError):
        problems = registry.mcp.add(config, pins=pins, wait_s=wait_s)
    return not any(problem.is_off for problem in problems)


def check_servers(config: Path, *, has_tools: bool, has_profiles: bool) -> ReadServers:
    """Reads the servers of a file, and starts none. Returns them, and the mistakes that others go on without.

    Raises:
        Stop: The file cannot be read, or a required server cannot be used. Without `has_tools`, which are those of
            other options: it has no server that can be used.
    """
    from toolwire.mcp.config import read_servers

    with wrong_usage(toolwire.ConfigurationError):
        read = read_servers(config)
    off = [problem for problem in read.problems if problem.is_off]
    required = [repr(problem.server) for problem in off if problem.is_required]
    if not required and (has_tools or read.servers):
        return read
    say_problems(read.problems)
    if required:
        wrong = f"{config} has required servers that cannot be used: {', '.join(required)}"
    elif off:
        wrong = f"no server of {config} can be used"
    elif has_profiles:
        raise Stop(ExitCode.WRONG_USAGE, f"{config} has profiles and no servers", hint="Give --tools FILE as well.")
    else:
        raise names_no_server(config)
    raise Stop(ExitCode.UNUSABLE_TOOLS, wrong, hint="The warnings say why.")


def say_problems(problems: Iterable[McpServerProblem]) -> None:
    """Logs each mistake as a warning, as `add_servers` does."""
    for problem in problems:
        _LOG.warning("%s", problem)


def names_no_server(config: Path) -> Stop:
    """Returns the error that ends the command because a file has no server that is on."""
    hint = "Write one in its table mcpServers, or enable one that is disabled."
    return Stop(ExitCode.UNUSABLE_TOOLS, f"{config} names no server that is on", hint=hint)


def add_operations(registry: toolwire.ToolRegistry, document: str, *, client: Any = None) -> None:
    """Adds the operations of an OpenAPI document. Warnings name those that are left out.

    `client` is that of `register_openapi`: its base URL counts in place of the document's server.

    Raises:
        Stop: The document cannot be used, or no operation of it can be.
    """
    try:
        added = registry.register_openapi(document, client=client)
    except toolwire.ToolwireError as error:
        raise _unusable(str(error)) from error
    if not added:
        raise _unusable(f"{document} has no operation that can be a tool", hint="The warnings say why.")


def client_of_nowhere() -> Any:
    """Returns a client for operations that are only listed, so that the document's server does not matter.

    None if the package is missing; `register_openapi` says so.
    """
    try:
        import httpx2
    except ImportError:
        return None
    answer = httpx2.Response(503)
    return httpx2.AsyncClient(base_url="http://nowhere.invalid", transport=httpx2.MockTransport(lambda _: answer))


def load_function(named: str) -> Callable[..., Any]:
    """Returns the function that `module:name` or `file.py:name` names.

    Raises:
        Stop: The module cannot be loaded, or has no such function.
    """
    source, mark, name = named.rpartition(":")
    if not mark or not source or not name.isidentifier():
        raise _unusable(f"{named!r} names no function", hint="Write MODULE:FUNCTION, such as app:session_for.")
    found = getattr(_load(source), name, None)
    if not callable(found):
        raise _unusable(f"{source} has no function {name}", hint=f"Write `def {name}(...)` in it, or name another.")
    return found


def _find_registry(loaded: list[tuple[str, ModuleType]]) -> toolwire.ToolRegistry | None:
    """Returns the registry that one of the modules defines. None if no module defines one."""
    found = {
        id(value): (source, value)
        for source, module in loaded
        for _, value in _public(module)
        if isinstance(value, toolwire.ToolRegistry)
    }
    if not found:
        return None
    source, registry = next(iter(found.values()))
    if len(found) > 1:
        raise _unusable(
            f"there are {len(found)} registries, and each brings rules of its own: "
            f"{', '.join(dict.fromkeys(source for source, _ in found.values()))}",
            hint="Give one of them alone, or name it in __all__.",
        )
    if len(loaded) > 1:
        raise _unusable(
            f"{source} has a ToolRegistry, which is used alone, with its rules",
            hint="Give it without other --tools, or register the other tools in it.",
        )
    if not registry.list_toolspecs():
        raise _unusable(f"the ToolRegistry of {source} is empty", hint="Register tools in it.")
    return registry


def _new_registry(loaded: list[tuple[str, ModuleType]], approver: Approver | None) -> toolwire.ToolRegistry:
    registry = toolwire.ToolRegistry(approver=approver)
    for source, module in loaded:
        tools = _module_tools(module)
        if not tools:
            raise _unusable(
                f"{source} has no tools", hint=f"{_near_misses(module)}{_import_hint(module)}{_WHAT_COUNTS}"
            )
        for tool in tools:
            try:
                registry.register_tool_to_library(tool)
            except toolwire.ToolwireError as error:
                raise _unusable(f"{source}: {error}") from error
            except Exception as error:
                # A tool class is instantiated and asked for its parameters here. Both run its author's code.
                raise _unusable(f"{source}: {type(error).__name__}: {error}") from error
    return registry


def _module_tools(module: ModuleType) -> list[object]:
    """Returns the tools of a module in the order of their definition, each once.

    A function or class from which another tool was made is left out. `add = ...; spec = ToolSpec.from_function(add)` is
    one tool.
    """
    found = [value for _, value in _public(module) if _is_tool(value, module)]
    made = {getattr(value, "name", None) for value in found if isinstance(value, toolwire.ToolSpec | toolwire.BaseTool)}
    classes = {type(value) for value in found}
    unique = {
        id(value): value
        for value in found
        if not (inspect.isfunction(value) and value.__name__ in made)
        and not (inspect.isclass(value) and value in classes)
    }
    return list(unique.values())


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yields the names in `__all__`, or else those without a leading underscore."""
    names = cast("Iterable[str] | None", getattr(module, "__all__", None))
    if names is None:
        yield from ((name, value) for name, value in vars(module).items() if not name.startswith("_"))
        return
    for name in names:
        if not hasattr(module, name):
            raise _unusable(f"{module.__name__}.__all__ names {name!r}, which is not there")
        yield name, getattr(module, name)


def _is_tool(value: object, module: ModuleType) -> bool:
    if not hasattr(module, "__all__") and _is_raw_file_tool(value):
        raise _unusable(
            f"{module.__name__} imports a raw file tool, which uses every file of this machine",
            hint="If a model shall have it, name it in __all__, or register it in a ToolRegistry.",
        )
    if isinstance(value, toolwire.ToolSpec | toolwire.BaseTool):
        return True
    if inspect.isfunction(value):
        return _is_of_module(value, module) and bool(inspect.getdoc(value))
    return _is_tool_class(value) and _is_of_module(value, module)


def _is_raw_file_tool(value: object) -> bool:
    return isinstance(value, toolwire.types.FunctionTool) and any(
        value is raw
        for raw in (toolwire.tools.view_text_file, toolwire.tools.write_text_file, toolwire.tools.insert_text_file)
    )


def _is_tool_class(value: object) -> TypeGuard[type[toolwire.BaseTool]]:
    return inspect.isclass(value) and issubclass(value, toolwire.BaseTool) and not inspect.isabstract(value)


def _is_of_module(value: object, module: ModuleType) -> bool:
    """True if the module defines the value, or names it in `__all__`."""
    return hasattr(module, "__all__") or getattr(value, "__module__", None) == module.__name__


def _near_misses(module: ModuleType) -> str:
    """Names the functions that lack only a docstring. Empty if there are none."""
    names = [
        name
        for name, value in _public(module)
        if inspect.isfunction(value) and _is_of_module(value, module) and not inspect.getdoc(value)
    ]
    return f"Without a docstring: {', '.join(names)}. " if names else ""


def _import_hint(module: ModuleType) -> str:
    """Says how to name the tools that the module only imports. Empty if there are none."""
    if hasattr(module, "__all__"):
        return ""
    names = [
        name
        for name, value in _public(module)
        if (inspect.isfunction(value) or _is_tool_class(value)) and inspect.getdoc(value) and not _is_of_python(value)
    ]
    if not names:
        return ""
    written = ", ".join(f'"{name}"' for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"A tool that it imports counts if __all__ names it: __all__ = [{written}]. "


def _is_of_python(value: object) -> bool:
    """True for a function of the standard library or of toolwire, which nobody means as a tool."""
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return package in sys.stdlib_module_names or package == "toolwire"


def _load(source: str) -> ModuleType:
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
        raise _unusable(f"{source} is a folder", hint="Give a .py file, or the name of a module.")
    if not path.exists():
        raise _unusable(f"there is no file {source}")
    if path.suffix != ".py":
        raise _unusable(f"{source} is not a Python file", hint="Give a file that ends in .py, or the name of a module.")
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
        raise _load_failure(source, str(path), error) from error
    return module


def _load_module(source: str) -> ModuleType:
    if not all(part.isidentifier() for part in source.split(".")):
        raise _unusable(f"there is no file {source}, and no module has that name")
    _put_on_path(Path.cwd())
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{source}.".startswith(f"{error.name}."):
            hint = "A file is given with its .py. Modules are looked for in this folder and where Python finds them."
            raise _unusable(f"there is no module {error.name}", hint=hint) from error
        raise _load_failure(source, _origin(source), error) from error
    except (Exception, SystemExit) as error:
        raise _load_failure(source, _origin(source), error) from error


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


def _load_failure(source: str, file: str, error: BaseException) -> Stop:
    if isinstance(error, SyntaxError):
        return _unusable(
            f"{_error_place(source, file, error.filename, error.lineno)}: {type(error).__name__}: {error.msg}"
        )
    said = "".join(traceback.format_exception_only(error)).strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if frame.filename == file]
    place = _error_place(source, file, own[-1].filename, own[-1].lineno) if own else source
    if frames and own and frames[-1] is not own[-1]:
        said += f" (raised in {frames[-1].filename}, line {frames[-1].lineno})"
    if isinstance(error, SystemExit):
        hint = 'It ends the process when it is imported: put that under `if __name__ == "__main__":`.'
        return _unusable(f"{place}: {said}", hint=hint)
    return _unusable(f"{place}: {said}")


def _error_place(source: str, file: str, where: str | None, line: int | None) -> str:
    """Returns the place of an error, in the named file or in a file that it imports."""
    named = source if where is None or where == file else where
    return f"{named}, line {line}" if line is not None else named


def _unusable(message: str, *, hint: str = "") -> Stop:
    """Returns the error that ends the command because its tools are unusable."""
    return Stop(ExitCode.UNUSABLE_TOOLS, f"the tools cannot be loaded: {message}", hint=hint)
