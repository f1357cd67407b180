"""The hook calls: plugins' answers combined, time limits enforced, and failures reported."""
