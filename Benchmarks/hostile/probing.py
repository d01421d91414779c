"""Checks the service's health as a load balancer does: `python3 -m hostile.probing PORT SECONDS [CA]`.

It sends one check after the other, each on a new connection. A check that is not answered 200 within five seconds fails.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time

from comparison.figures import percentile, rounded

TIMEOUT_SECONDS = 5.0
PATHS = ("/healthz", "/readyz")


def is_answered(port: int, path: str, tls: ssl.SSLContext | None) -> bool:
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=TIMEOUT_SECONDS, context=tls)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main() -> None:
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    tls = ssl.create_default_context(cafile=sys.argv[3]) if len(sys.argv) > 3 else None
    waits, failed = [], 0
    end, number = time.monotonic() + seconds, 0
    while (began := time.monotonic()) < end:
        number += 1
        if is_answered(port, PATHS[number % len(PATHS)], tls):
            waits.append((time.monotonic() - began) * 1000)
        else:
            failed += 1
    print(
        json.dumps(
            {
                "answered": len(waits),
                "failed": failed,
                "p50_ms": rounded(percentile(waits, 50)) if waits else 0,
                "p99_ms": rounded(percentile(waits, 99)) if waits else 0,
                "max_ms": rounded(max(waits, default=0)),
            }
        )
    )


if __name__ == "__main__":
    main()
