"""Attack programs against the sandbox, each with a control that shows that it would work without the wall it meets.

    attack.py       what an attack is, and the names every program starts with
    programs/       the corpus: a module for each family, read them first
    canaries.py     what the host watches: files, listeners, a process, tools that nobody was granted
    arena.py        runs one attack: against the sandbox, or against one whose layers are taken away
    zygotes.py      the fork server with named layers taken away; naive_host.py: a host with none at all

An attack has succeeded when the host sees it: a secret in the result, a file, a connection, a signal, a process
that lives on, a tool that ran and must not, a fault of the host. That the program met an exception counts for nothing.
"""
