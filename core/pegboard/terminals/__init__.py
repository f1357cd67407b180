"""Programs at a pseudo-terminal, for a person and not for a model."""
