"""The recipes of CONTRIBUTING, each walked as a user of the package would."""
