#!/bin/sh
# Settings of topics, brokers and mirrors: describe, alter.
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" configs "$@"
