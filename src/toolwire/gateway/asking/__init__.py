"""Questions to the client of a gateway and to its person, and the answers."""
