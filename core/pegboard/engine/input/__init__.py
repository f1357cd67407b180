"""The input of a person: prompts, mentions, slash commands, shell lines, subtasks."""
