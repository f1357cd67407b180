"""What tools for files and the web are made with: paths, texts, patterns, addresses."""
