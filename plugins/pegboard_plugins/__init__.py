"""The built-in plugins: each module here is one plugin with its own entry point."""
