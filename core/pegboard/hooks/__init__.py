"""The calls of hooks: answers combined, within time limits, with failures noted."""
