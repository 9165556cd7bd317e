"""The runner of local models, and real replies of one played through `Session`."""
