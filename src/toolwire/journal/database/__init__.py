"""The database of a store: location, engine, schema, encryption, and the thread that writes."""
