"""Files of a few folders, reached by descriptors alone, so that no path leads out of them."""
