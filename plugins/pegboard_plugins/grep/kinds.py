"""The types of files to which a search can be limited, with ripgrep's names for the types."""

_C = ("*.c", "*.h", "*.H", "*.cats")
_CPP = ("*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl")
_MAKE = ("Makefile", "makefile", "GNUmakefile", "*.mk", "*.mak")
_RUBY = ("*.rb", "*.rake", "*.gemspec", "Gemfile", "Rakefile")

KINDS: dict[str, tuple[str, ...]] = {
    "c": _C,
    "cpp": _CPP,
    "cs": ("*.cs",),
    "css": ("*.css", "*.scss"),
    "dart": ("*.dart",),
    "docker": ("Dockerfile", "*.dockerfile", "Dockerfile.*"),
    "elixir": ("*.ex", "*.exs", "*.eex", "*.heex"),
    "go": ("*.go",),
    "haskell": ("*.hs", "*.lhs"),
    "html": ("*.html", "*.htm"),
    "java": ("*.java", "*.jsp"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "json": ("*.json", "*.jsonc", "*.jsonl"),
    "julia": ("*.jl",),
    "kotlin": ("*.kt", "*.kts"),
    "lua": ("*.lua",),
    "make": _MAKE,
    "md": ("*.md", "*.mdx", "*.markdown"),
    "nix": ("*.nix",),
    "perl": ("*.pl", "*.pm", "*.t"),
    "php": ("*.php",),
    "proto": ("*.proto",),
    "py": ("*.py", "*.pyi"),
    "r": ("*.r", "*.R", "*.Rmd"),
    "rst": ("*.rst",),
    "ruby": _RUBY,
    "rust": ("*.rs",),
    "scala": ("*.scala", "*.sbt"),
    "sh": ("*.sh", "*.bash", "*.zsh", "*.ksh"),
    "sql": ("*.sql",),
    "svelte": ("*.svelte",),
    "swift": ("*.swift",),
    "tf": ("*.tf", "*.tfvars"),
    "toml": ("*.toml",),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "txt": ("*.txt",),
    "vue": ("*.vue",),
    "xml": ("*.xml", "*.xsd", "*.xsl"),
    "yaml": ("*.yaml", "*.yml"),
    "zig": ("*.zig", "*.zon"),
}
"""The name of a type, and the names of its files: few, and known to both searches."""
