#!/bin/sh
# Consumer groups: list, describe, delete, reset offsets.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" groups "$@"
