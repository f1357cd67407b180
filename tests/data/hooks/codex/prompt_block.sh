#!/bin/sh
cat > /dev/null
echo "prompts go through the ticket system" >&2
exit 2
