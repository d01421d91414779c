#!/usr/bin/env python3
"""Times AUTH with tokens that are wrong in different places, to see whether the time reveals the place.

  swift build -c release --product headroom
  python3 Benchmarks/authentication/times.py .build/release/headroom [ROUNDS]

Starts a PostgreSQL and a service of its own, with 102 live tokens. The digests of two of them differ from the digest of a
token that is presented in one byte only, the first or the last: an attack on the comparison would begin with such tokens. In
each round (20,000 by default) the service gets one AUTH with each wrong token, in random order, so that other work on the
machine affects all of them alike. Prints a table for docs/contributors/security.md: the median and the quartiles of the round trips in
microseconds, and the difference of the median from that of a random token, with its 95 % confidence interval. If the
interval contains 0, no difference was measured.
"""

import hashlib
import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests"))

from support import processes, settings
from support.postgres import Cluster
from support.service import Service

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def token():
    return "headroom_" + "".join(random.choices(ALPHABET, k=43))


def other(character):
    return random.choice(ALPHABET.replace(character, ""))


def prepare(session, live):
    """Creates the live tokens; returns the credentials to present by their error."""
    near_first, near_last = token(), token()
    digests = [hashlib.sha256(text.encode()).digest() for text in live]
    for text, place in ((near_first, 0), (near_last, 31)):
        digest = bytearray(hashlib.sha256(text.encode()).digest())
        digest[place] ^= 1
        digests.append(bytes(digest))
    random.shuffle(digests)
    for digest in digests:
        session.run(f"select headroom.create_token('backend', '{{chat}}', '\\x{digest.hex()}')")
    right = live[50]
    return {
        "nothing right": token(),
        "first character wrong": "headroom_" + other(right[9]) + right[10:],
        "last character wrong": right[:-1] + other(right[-1]),
        "first byte of the digest wrong": near_first,
        "last byte of the digest wrong": near_last,
    }


def measure(service, presented, rounds):
    times = {kind: [] for kind in presented}
    requests = {kind: f"AUTH backend {text}\r\n".encode() for kind, text in presented.items()}
    with service.connect() as line:
        assert line.send_command(f"AUTH backend {presented['nothing right']}").startswith("-NOAUTH ")
        kinds = list(requests)
        for number in range(rounds + 500):
            random.shuffle(kinds)
            for kind in kinds:
                began = time.perf_counter_ns()
                line.socket.sendall(requests[kind])
                reply = line.socket.recv(4096)
                ended = time.perf_counter_ns()
                assert reply.startswith(b"-NOAUTH ") and reply.endswith(b"\r\n"), reply
                # The first rounds are slower because of cold caches.
                if number >= 500:
                    times[kind].append((ended - began) / 1_000)
    return times


def interval(some, others, runs=200):
    """The 95 % confidence interval of the difference of medians, by resampling."""
    size = min(len(some), 5_000)
    scale = (size / len(some)) ** 0.5
    observed = statistics.median(some) - statistics.median(others)
    differences = sorted(
        statistics.median(random.choices(some, k=size)) - statistics.median(random.choices(others, k=size)) for _ in range(runs)
    )
    low, high = differences[int(runs * 0.025)], differences[int(runs * 0.975)]
    # Draws a sample to limit the time; the interval shrinks with the root of its size.
    return observed + (low - observed) * scale, observed + (high - observed) * scale


def main():
    if len(sys.argv) not in (2, 3) or not os.access(sys.argv[1], os.X_OK):
        sys.exit("usage: times.py BINARY [ROUNDS]")
    settings.binary = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 20_000
    try:
        cluster = Cluster.shared()
        database = cluster.new_database(is_migrated=True)
        url = cluster.url(database)
        session = cluster.session(database)
        presented = prepare(session, [token() for _ in range(100)])
        session.close()
        # A connection with wrong tokens only would be closed earlier.
        service = Service("--authentication-timeout-ms", "600000", database_url=url)
        times = measure(service, presented, rounds)
        service.stop()
    finally:
        processes.stop_all()
    base = times["nothing right"]
    print(f"{rounds:,} rounds, 102 live tokens; microseconds\n")
    print("| presented | median | quartiles | differs from the first by |")
    print("|---|---|---|---|")
    for kind, values in times.items():
        low, middle, high = statistics.quantiles(values, n=4)
        differs = "–"
        if values is not base:
            ends = interval(values, base)
            differs = f"{statistics.median(values) - statistics.median(base):+.2f} ({ends[0]:+.2f} to {ends[1]:+.2f})"
        print(f"| {kind} | {middle:.2f} | {low:.2f} to {high:.2f} | {differs} |")


main()
