"""Programs that a test writes."""

from pathlib import Path


def program(path: Path, content: str = "#!/bin/sh\n") -> Path:
    """A file that can be run, in a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path
