"""How an App comes to be, and what of it is made anew when a project's code changes."""
