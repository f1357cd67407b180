#!/bin/sh
cat > "$HOME/end.json"
