"""The account of a failed program: traceback, known mistakes, and the hint for the model."""
