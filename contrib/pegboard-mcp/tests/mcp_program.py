"""`pegboard mcp` on the project that the first argument names, as the program runs it."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

if __name__ == "__main__":
    import pegboard_mcp  # noqa: F401 - found next to its tests, as plugins of the settings are
    from pegboard_mcp.command import mcp

    try:
        mcp.main(sys.argv[2:], obj=Path(sys.argv[1]), standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - printed as the program prints it
        sys.exit(str(error))
