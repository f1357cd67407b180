#!/bin/sh
cat > "$HOME/ended.json"
