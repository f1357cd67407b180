"""The configuration: merged from files, environment and program, checked, with sources."""
