#!/bin/sh
cat > /dev/null
echo "$GEMINI_PROJECT_DIR" > "$HOME/place"
