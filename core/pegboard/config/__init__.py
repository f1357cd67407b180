"""The configuration: files, environment and program merged, checked, with sources."""
