"""The facts that an author writes in a docstring."""
