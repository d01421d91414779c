"""Peers that flood a port with TLS: `python3 -m hostile.floods PORT CERTIFICATE KIND CONNECTIONS` prints ready, and at its end how many
bytes it sent on how many connections. Each connection sends without end, reads nothing, and is opened again when it is closed."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import sys
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BLOCK_BYTES = 262_144
#: The streams of one connection that a peer can open, so many at a time.
STREAMS = range(1, 2**20, 2)


def frame(kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def head(stream: int, path: bytes = b"/v1/x", flags: int = 4) -> bytes:
    return frame(1, b"\x83\x87\x44" + bytes((len(path),)) + path + b"\x41\x01x", flags, stream)


def resets() -> bytes:
    return b"".join(head(stream) + frame(3, bytes(4), stream=stream) for stream in STREAMS[:8_000])


HTTP2 = PREFACE + frame(4)
#: What is said first, and what follows again and again.
KINDS = {
    "no frames": (HTTP2, b"\xff"),
    "CONTINUATION": (HTTP2 + head(1, flags=0), frame(9, stream=1)),
    "PING": (HTTP2, frame(6, bytes(8))),
    "SETTINGS": (HTTP2, frame(4, b"\0\3\0\0\0d")),
    "PRIORITY": (HTTP2, frame(2, b"\0\0\0\0\1", stream=5)),
    "empty DATA": (HTTP2 + head(1), frame(0, stream=1)),
    "DATA of one byte": (HTTP2 + head(1, b"/webhooks/appstore"), frame(0, b"x", stream=1)),
    "RST_STREAM": (HTTP2, resets()),
    "WINDOW_UPDATE": (HTTP2, frame(8, b"\0\0\0\1")),
    "GOAWAY": (HTTP2, frame(7, bytes(8))),
    "unknown frames": (HTTP2, frame(0x20, bytes(16_001))),
    "unknown frames, empty": (HTTP2, frame(0x20)),
    "no HTTP/1.1": (b"\x01\r\n\r\n", b"x"),
    "no TLS": (b"", b"\xff"),
    "line port: no line": (b"", b"x"),
}


def is_http2(kind: str) -> bool:
    return KINDS[kind][0].startswith(PREFACE)


def flood(port: int, context: ssl.SSLContext, kind: str, sent: list[int], ending: threading.Event) -> None:
    begin, unit = KINDS[kind]
    block = unit * max(1, BLOCK_BYTES // len(unit))
    while not ending.is_set():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
                sent[1] += 1
                connection = plain if kind == "no TLS" else context.wrap_socket(plain, server_hostname="localhost")
                connection.sendall(begin)
                while not ending.is_set():
                    connection.sendall(block)
                    sent[0] += len(block)
        except (OSError, ssl.SSLError):
            ending.wait(0.001)


def main() -> None:
    port, certificate, kind, connections = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    context = ssl.create_default_context(cafile=certificate)
    context.set_alpn_protocols(["h2"] if is_http2(kind) else ["http/1.1"])
    sent, ending = [0, 0], threading.Event()
    threads = [threading.Thread(target=flood, args=(port, context, kind, sent, ending), daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    signal.sigwait({signal.SIGTERM})
    ending.set()
    print(json.dumps({"sent_mb": sent[0] / 1e6, "connections": sent[1]}), flush=True)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    main()
