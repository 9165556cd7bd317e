"""The `toolwire` command, and `python -m toolwire`."""

import sys


def main() -> None:
    """Runs the command line of this process, and ends the process."""
    try:
        # The import takes a tenth of a second, and Ctrl-C may come in that time.
        from toolwire.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("toolwire: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
