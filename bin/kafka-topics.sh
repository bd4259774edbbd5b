#!/bin/sh
# Topics: create, list, describe, alter, delete.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" topics "$@"
