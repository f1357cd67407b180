"""The keys of providers: where they are kept, and in which order they are looked for."""
