#!/bin/sh
case $(cat) in
*password*) echo "no passwords, please" >&2; exit 2 ;;
esac
