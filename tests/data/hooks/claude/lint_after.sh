#!/bin/sh
cat > /dev/null
echo "made.txt:1: no capital letters" >&2
exit 2
