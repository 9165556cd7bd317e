"""The guest as machine code of this processor: compiled once for each user, and kept in the folder of the user's cache.

Machine code is loaded into this process, so nobody else may have written it: what is loaded is the open file whose
owner, mode and folders were checked, and whose bytes have their checksum.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from toolwire.sandbox.wasm.guest_file import Guest
from toolwire.vocabulary.machine import system
from toolwire.vocabulary.machine.code_cache import code_cache_folder, is_in_reach

if TYPE_CHECKING:
    from wasmtime import Engine
    from wasmtime.component import Component

Load = Callable[["Engine"], "Component"]
"""Loads the compiled guest for one more engine."""
KEPT_FILES = 4
"""Compiled guests of 37 MB that stay in the folder: of so many versions of toolwire and wasmtime that a user has."""
_SUM_BYTES = hashlib.sha256().digest_size
_LOG = logging.getLogger("toolwire.sandbox")


class _Unfit(Exception):
    """The kept file cannot be used; the text says why."""


def load_or_compile(guest: Guest, engine: Engine, target: str) -> Load:
    """Returns how to load the guest. Compiles it if nobody has, which takes 4 to 9 seconds on two processors.

    Args:
        guest: The guest.
        engine: Compiles it.
        target: What it is compiled for, as a part of the file's name.

    Raises:
        SandboxUnavailable: The guest is missing or damaged.
    """
    name = f"{guest.digest[:32]}-wasmtime-{version('wasmtime')}-{target}.cwasm"
    folder = code_cache_folder()
    if folder is None:
        return _from_bytes(_compile(guest, engine), "this user has no folder for caches")
    if is_in_reach(folder):
        return _from_bytes(_compile(guest, engine), f"a file tool of this process may write to {folder}")
    try:
        return _open_kept(folder / name)
    except FileNotFoundError:
        pass
    except (OSError, _Unfit) as error:
        _LOG.warning("%s: %s; the WebAssembly guest is compiled anew", folder / name, error)
    return _compile_into(folder, name, guest, engine)


def target_name() -> str:
    """Returns the processor and system that machine code of this process is for."""
    return f"{system.PLATFORM}-{platform.machine()}".lower()


def _compile_into(folder: Path, name: str, guest: Guest, engine: Engine) -> Load:
    """Compiles the guest and keeps it, in memory alone if the folder cannot keep it."""
    code = b""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _hold_lock(folder / f"{name}.lock"):
            try:
                # Another process may have compiled it meanwhile.
                return _open_kept(folder / name)
            except (OSError, _Unfit):
                code = _compile(guest, engine)
            _write_whole(folder / name, code + hashlib.sha256(code).digest())
        _remove_old(folder)
        return _open_kept(folder / name)
    except (OSError, _Unfit) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return _from_bytes(code or _compile(guest, engine), f"{folder} cannot keep it: {reason}")


@contextmanager
def _hold_lock(path: Path) -> Generator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        system.lock(file)
        yield
    finally:
        os.close(file)


def _write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is whole once it has its name. Needs the lock, so that no process uses a draft there."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _remove_old(folder: Path) -> None:
    files = sorted(folder.glob("*.cwasm"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT_FILES:]:
        file.unlink(missing_ok=True)
        file.with_name(f"{file.name}.lock").unlink(missing_ok=True)


def _compile(guest: Guest, engine: Engine) -> bytes:
    from wasmtime.component import Component

    _LOG.warning(
        "the WebAssembly guest is compiled for this machine, once: this takes some seconds. `toolwire doctor` does it "
        "beforehand."
    )
    began = time.monotonic()
    code = bytes(Component(engine, guest.unpack()).serialize())
    _LOG.info("the WebAssembly guest was compiled in %.1f s", time.monotonic() - began)
    return code


def _from_bytes(code: bytes, reason: str) -> Load:
    from wasmtime.component import Component

    _LOG.warning("the compiled WebAssembly guest is kept in memory alone, because %s", reason)
    return lambda engine: Component.deserialize(engine, code)


def _open_kept(path: Path) -> Load:
    """Returns how to load a kept file. It stays open: what was checked is what each engine loads, and all share it.

    Raises:
        OSError: It cannot be opened; FileNotFoundError: there is none.
        _Unfit: Another user may have written it, or it is not whole.
    """
    from wasmtime.component import Component

    real = path.parent.resolve(strict=True) / path.name
    file = _open_below_own(real)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode) or not system.is_private(os.fstat(file)):
            raise _Unfit(f"another user may use it: chmod 600 {real}")
        with os.fdopen(os.dup(file), "rb") as content:
            code = content.read()
        if hashlib.sha256(code[:-_SUM_BYTES]).digest() != code[-_SUM_BYTES:]:
            raise _Unfit("it is damaged")
    except BaseException:
        os.close(file)
        raise
    place = f"/dev/fd/{file}" if system.O_DIRECTORY else str(real)
    return lambda engine: Component.deserialize_file(engine, place)


def _open_below_own(path: Path) -> int:
    """Opens a file. No link is followed, and no folder on the way may be one in which another user replaces files.

    Windows keeps such rights elsewhere; a user's folder is private there.
    """
    if not system.O_DIRECTORY:
        return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    folder, here = os.O_RDONLY | system.O_DIRECTORY | system.O_NOFOLLOW, Path(path.anchor)
    held = os.open(here, folder)
    try:
        for name in path.parts[1:-1]:
            inner = os.open(name, folder, dir_fd=held)
            os.close(held)
            held, here = inner, here / name
            status = os.fstat(held)
            is_shared = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
            if is_shared or str(status.st_uid) not in ("0", system.user_id()):
                raise _Unfit(f"another user may replace files in {here}: chmod go-w {here}")
        return os.open(path.name, os.O_RDONLY | system.O_NOFOLLOW, dir_fd=held)
    finally:
        os.close(held)
