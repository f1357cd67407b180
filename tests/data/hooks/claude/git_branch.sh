#!/bin/sh
cat > /dev/null
echo "branch: feature/door"
