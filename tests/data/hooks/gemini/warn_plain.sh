#!/bin/sh
cat > /dev/null
echo "careful"
exit 1
