#!/bin/sh
# Prints the batches of .log files.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" dump-log "$@"
