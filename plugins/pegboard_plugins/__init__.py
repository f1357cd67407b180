"""The built-in plugins: each module is one plugin, found through its own entry point."""
