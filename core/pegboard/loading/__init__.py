"""Plugins from their sources to the register: found, loaded, checked and reported."""
