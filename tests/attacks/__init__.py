"""Attack programs against the sandbox; for each, a control shows that it succeeds without the layer that stops it.

    attack.py       the class of an attack, and the names that every program starts with
    programs/       the corpus: a module for each family, read them first
    canaries.py     the canaries of the host: files, listeners, a process, tools not granted to the program
    arena.py        runs one attack: against the sandbox, or against one whose layers are taken away
    zygotes.py      the fork server with named layers taken away; naive_host.py: a host with none at all

An attack has succeeded when the host sees it: a secret in the result, a file, a connection, a signal, a process
that lives on, a tool that ran and must not, a fault of the host. That the program met an exception counts for nothing.
"""
