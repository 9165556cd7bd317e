"""The command line. Start at `main.py`; one file a command.

Results go to standard output and nothing else does; everything else goes to standard error. Only public names of
toolwire are used here.
"""
