"""Special calls: by the user, by subagents, repeated ones, and what a first call imports."""
