"""The example programs of the repository."""
