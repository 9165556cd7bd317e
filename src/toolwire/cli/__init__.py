"""The command line. Start at `main.py`; each command has one file.

Only results go to standard output; everything else goes to standard error. The command line uses only public names of
toolwire.
"""
