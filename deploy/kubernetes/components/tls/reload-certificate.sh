#!/bin/sh
# Sends SIGHUP to the service when Kubernetes has replaced the files of its certificate, and once after its own start. The service reads
# them then, and keeps its connections; if it cannot use them, its log says why, and it keeps the old ones.
set -u

loaded=
while sleep "${RELOAD_SECONDS:-60}"; do
    files=$(cat "$HEADROOM_TLS_CERTIFICATE" "$HEADROOM_TLS_KEY" | sha256sum)
    # A service that does not answer yet would be ended by the signal.
    if [ "$files" != "$loaded" ] && headroom ping 127.0.0.1:6747 >/dev/null 2>&1 && kill -HUP "$(pidof headroom)"; then
        loaded=$files
    fi
done
