"""Tries the generated mutants of the files given, or of all files; exits with 1 if too many of one file survive."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys

from .generated import load, try_file


def main() -> int:
    files = {broken.name: broken for broken in load()}
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"files from src/toolwire: {', '.join(files)}")
    parser.add_argument("--children", type=int, default=2, help="mutants at a time (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.names) - files.keys():
        parser.error(f"layers.toml does not list {', '.join(sorted(unknown))}")
    names = options.names or list(files)
    if len(names) > 1:
        command = [sys.executable, "-m", "tests.mutation", f"--children={options.children}"]
        codes = [subprocess.run([*command, name], check=False).returncode for name in names]
        return int(any(codes))
    result = try_file(files[names[0]], options.children)
    for name, (old, new) in result.survivors.items():
        print(f"survived: {name}\n  - {old}\n  + {new}")
    for each in result.unused:
        print(f"listed as equivalent, but no survivor is this mutant:\n  - {each.old}\n  + {each.new}")
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in used)
    print(
        f"{names[0]}: {result.total} mutants, {result.killed} killed, {result.equivalent} equivalent, "
        f"{len(result.survivors)} survived; {seconds:.0f} processor seconds"
    )
    return int(not result.is_enough)


if __name__ == "__main__":
    sys.exit(main())
