#!/bin/sh
# Prints records.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" consume "$@"
