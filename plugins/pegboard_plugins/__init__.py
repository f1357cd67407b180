"""The built-in plugins: each module is one plugin with its own entry point."""
