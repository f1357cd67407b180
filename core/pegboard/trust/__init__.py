"""May this project's code run? What counts as code, and what its owner has allowed."""
