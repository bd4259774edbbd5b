#!/bin/sh
# Stops the broker that was started with the same file: kafka-server-stop.sh config/server.properties
exec "$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog" stop "$@"
