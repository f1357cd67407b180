"""The decision whether a tool call may run: by rules, plugins, approvals, or else by the user."""
