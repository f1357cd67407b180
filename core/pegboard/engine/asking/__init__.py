"""The decision whether a call may run: by rules, plugins and approvals, or else by the user."""
