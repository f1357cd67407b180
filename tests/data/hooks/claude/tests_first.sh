#!/bin/sh
case $(cat) in
*'"stop_hook_active":true'*) exit 0 ;;
esac
echo "run the tests before you stop" >&2
exit 2
