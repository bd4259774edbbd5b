#!/bin/sh
# Starts a broker: kafka-server-start.sh [-daemon] config/server.properties [--override key=value]...
twinlog=$(dirname "$(readlink -f "$0" 2>/dev/null || echo "$0")")/twinlog
if [ "$1" != "-daemon" ]; then
    exec "$twinlog" serve "$@"
fi
shift
logs=${LOG_DIR:-logs}
mkdir -p "$logs" || exit 1
nohup "$twinlog" serve "$@" >"$logs/server.out" 2>&1 </dev/null &
echo "Started in the background (process $!); it writes to $logs/server.out"
