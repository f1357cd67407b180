"""May this call run? Rules, plugins, approvals, and a user at last."""
