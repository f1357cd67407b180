"""Functions as tools: their signatures, JSON Schemas, and the validation of arguments."""
