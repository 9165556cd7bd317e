"""The interface that the path awaits, and its two drivers: a blocking one and one for event loops."""
