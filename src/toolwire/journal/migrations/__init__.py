"""The schema's history. Alembic runs it at open; `versions/` holds one file a change, never edited once released."""
