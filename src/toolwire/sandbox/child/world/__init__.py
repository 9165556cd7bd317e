"""The Python that a program sees: tools, modules, output, event loop, clocks and randomness."""
