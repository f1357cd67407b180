#!/bin/sh
cat > /dev/null
echo "export BUILD_MODE=debug" >> "$CLAUDE_ENV_FILE"
