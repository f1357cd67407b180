"""What a session's calls do to files: who read which state, and what changed."""
