"""May this call run? Rules, plugins, approvals, and a person at last."""
