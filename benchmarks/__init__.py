"""Figures of this machine, with the floor and the best peers in the same run. `make bench` prints them all."""
