"""The seeds: their promises and their examples."""
