"""Who may do what: rules and verdicts, agents, and what waits for a person's answer."""
