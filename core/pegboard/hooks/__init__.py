"""How hooks are called: answers combined, within time limits, with failures noted."""
