#!/bin/sh
cat > /dev/null
echo "last time: the tests of the parser failed"
