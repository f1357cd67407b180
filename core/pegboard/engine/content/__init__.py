"""Content for models: attached files and results of tools, within bounds."""
