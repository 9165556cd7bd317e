"""The changes of the schema in order, one file each."""
