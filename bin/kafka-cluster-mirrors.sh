#!/bin/sh
# Mirrors: create, start, stop, list, describe, wait, verify, plan, promote.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" mirrors "$@"
