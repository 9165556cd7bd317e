"""The history of the schema.

Alembic runs it when a store is opened. `versions/` holds one file per change; a released file is never edited.
"""
