#!/bin/sh
cat > /dev/null
echo "not on a Friday"
exit 3
