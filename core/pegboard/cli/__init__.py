"""The command line: `main` is what the `pegboard` script calls; subcommands load late."""
