"""The kernel's layers around a program, and the self-test that each of them holds."""
