"""What outlives the process: sessions, messages, parts, events, approvals and tool state."""
