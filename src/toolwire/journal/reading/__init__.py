"""Lists of what a store holds, in pages: runs, requests and calls. Nothing here takes a lease or writes."""
