#!/bin/sh
cat > /dev/null
echo "the sandbox is closed" >&2
exit 2
