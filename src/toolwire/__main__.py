"""`python -m toolwire`."""

from toolwire.cli.main import main

if __name__ == "__main__":
    main()
