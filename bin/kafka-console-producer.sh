#!/bin/sh
# Writes lines of standard input as records.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" produce "$@"
