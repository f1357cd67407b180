"""The user's directories, as far as the command line needs them without an App."""

import os
from pathlib import Path


def state_dir() -> Path:
    """Where trust, logs and tracebacks are kept: `PEGBOARD_STATE_DIR`, or the platform's place."""
    if chosen := os.environ.get("PEGBOARD_STATE_DIR"):
        return Path(chosen)
    import platformdirs  # 3 ms, and only when a file is really needed

    return platformdirs.user_state_path("pegboard")
