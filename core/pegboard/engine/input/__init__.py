"""The input of a user: prompts, mentions, slash commands, shell commands and subtasks."""
