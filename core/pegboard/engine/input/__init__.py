"""What a person sends: prompts, mentions, slash commands, shell lines, subtasks."""
