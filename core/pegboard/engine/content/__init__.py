"""What a model gets of files and of tools' answers, within bounds."""
