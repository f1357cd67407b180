"""A function's signature as a tool has it: its JSON Schema, checked and bound."""
