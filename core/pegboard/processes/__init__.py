"""Programs that tools start: run, heard, bounded, and ended with all they started."""
