"""Greedy and idle peers: their effect on other connections, and their cost."""

import contextlib
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

from support import citus, processes, settings
from support.case import Case, needs_one_machine
from support.processes import resident_bytes
from support.service import limited
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer, Closed, LineConnection


def descriptors(service):
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


class GreedyConnections(Case):
    """One lane and small batches, so that a few hundred requests are a long queue."""

    FLAGS = None

    def held(self, service, *requests_of_lines):
        """Sends to each connection while a lock prevents counting, then releases the lock."""
        locks = self.cluster.session(self.database)
        locks.run("begin")
        locks.run("lock table message_usage in access exclusive mode")
        try:
            waiting = 0
            for connection, requests, count in requests_of_lines:
                connection.send(requests)
                waiting += count
                # The batch in progress does not wait any more.
                wait_until(lambda: int(service.info()["queue_depth"]) >= waiting - 16, f"{waiting} requests were taken in")
        finally:
            locks.close()

    def test_a_request_does_not_wait_for_a_thousand_of_another_connection(self):
        service = self.serve("--lanes", "1", "--batch-maximum", "16")
        user = self.subscriber_of(service)
        with service.connect() as greedy, service.connect() as good:
            self.held(service, (greedy, f"CONSUME {user}\n" * 700, 700), (good, f"CONSUME {user}\n", 1))
            # One user, so that the counts show the order.
            self.assertLess(Answer(good.read_line()).used, 100)
            uses = [Answer(greedy.read_line()).used for _ in range(700)]
        self.assertEqual(uses, sorted(uses), "the greedy one's own order is kept")
        self.assertEqual(self.count(user), 702)

    def subscriber_of(self, service):
        user = self.user()
        self.assertIn("+OK ", service.send_command(f"SETPLAN {user} paid"))
        self.assertIn("+ALLOWED ", service.send_command(f"CONSUME {user}"))
        return user

    def test_a_request_does_not_wait_for_a_pipeline_of_unbatched_requests(self):
        service = self.serve("--lanes", "1")
        user, other = self.subscriber_of(service), self.subscriber_of(service)
        # Each of them takes longer there, and all end within a request's time.
        count = 100 if citus.is_asked_for() else 300
        grants = "".join(f"GRANT {other} 1 key={number}\n" for number in range(count))
        with service.connect() as greedy, service.connect() as good:
            self.held(service, (good, f"CONSUME {user}\n", 1), (greedy, grants, count), (good, f"CHECK {other}\n", 1))
            self.assertIn("+ALLOWED ", good.read_line())
            # The limit shows how many were executed before.
            self.assertLess(int(Answer(good.read_line())["limit"]) - 800, count // 2, "half of the pipeline at most went before")
            self.assertEqual(Answer(greedy.read_lines(count)[-1])["limit"], str(800 + count))

    def test_long_replies_to_one_connection_do_not_keep_the_others_waiting(self):
        service = self.serve()

        def replies_before_the_others():
            with service.connect() as greedy, service.connect() as good:
                return self.long_replies_before(greedy, good)

        # A slow client may read the other's answer late, so several attempts are made; a service that answers one connection
        # completely first fails all of them.
        wait_until(lambda: replies_before_the_others() < 350, "half of the long replies at most come before the other's")

    def long_replies_before(self, greedy, good):
        """The number of the greedy connection's 700 replies that arrive before the good one's."""
        good.send_command("PING")
        received, started_at = bytearray(), threading.Event()

        def read():
            while received.count(b"+version=") < 700 and (data := greedy.socket.recv(1 << 16)):
                received.extend(data)
                started_at.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        greedy.send(b"INFO\n" * 700)
        self.assertTrue(started_at.wait(TIMEOUT_SECONDS))
        self.assertEqual(good.send_command("PING"), "+PONG")
        before = received.count(b"+version=")
        reader.join(TIMEOUT_SECONDS)
        self.assertEqual(received.count(b"+version="), 700, "all of it was answered")
        return before

    def test_a_pipeline_of_long_replies_is_answered_to_its_end(self):
        service = self.serve()
        with service.connect() as connection:
            threading.Thread(target=lambda: (connection.send(b"HELP\n" * 2_000), connection.end_input()), daemon=True).start()
            replies = connection.read_to_end()
        self.assertEqual(replies.count(b"\r\n*") + 1, 2_000)

    @needs_one_machine("it stops the only lane at each statement; each worker has a lane of its own")
    def test_overload_is_refused_early_and_accepted_requests_are_answered(self):
        service = self.serve("--lanes", "1", "--batch-maximum", "16", "--queue-wait-ms", "500", "--request-timeout-ms", "60000")
        users = [self.subscriber_of(service) for _ in range(100)]
        # The first statement waits for lock 1, the second for lock 2, and so on.
        self.psql.run(
            "create sequence public.turn;"
            " create function public.wait_for_turn() returns trigger language plpgsql security definer as"
            " $$ begin perform pg_advisory_xact_lock_shared(nextval('public.turn')); return null; end $$;"
            " create trigger wait_for_turn before update on message_usage for each statement execute function public.wait_for_turn();"
            " grant execute on function public.wait_for_turn() to headroom_service"
        )
        database = self.cluster.session(self.database)
        database.run("select pg_advisory_lock(turn) from generate_series(1, 4) as turn")
        connections = [service.connect() for _ in users]
        try:
            for connection, user in zip(connections, users):
                connection.send(f"CONSUME {user}\n")
            # Three statements of half a second each, so that its capacity is 32 messages a second.
            turns = "select last_value * is_called::integer from public.turn"
            for turn in (1, 2, 3):
                wait_until(lambda: self.psql.number(turns) == turn, "its turn has come")
                database.run(f"select pg_sleep(0.5), pg_advisory_unlock({turn})")
            wait_until(lambda: self.psql.number(turns) == 4, "the next one waits")
            for connection, user in zip(connections, users):
                connection.send(f"CONSUME {user}\n" * 10)
            # Each connection may have one waiting request; others wait for at most half a second, or are refused at once,
            # while the database is idle.
            wait_until(lambda: int(service.info().get("errors_overloaded", 0)) >= 800, "most are refused before the first is served")
        finally:
            database.run("select pg_advisory_unlock_all()")
            database.close()
        replies = [reply for connection in connections for reply in connection.read_lines(11)]
        self.psql.run("drop trigger wait_for_turn on message_usage")
        for connection in connections:
            connection.close()
        allowed = sum(reply.startswith("+ALLOWED ") for reply in replies)
        overloaded = [reply for reply in replies if reply.startswith("-OVERLOADED ")]
        self.assertEqual(allowed + len(overloaded), 1_100, sorted({reply.split(" ")[0] for reply in replies}))
        self.assertGreaterEqual(allowed, 100)
        for reply in overloaded:
            self.assertTrue(50 <= int(re.match(r"-OVERLOADED retry_ms=(\d+) ", reply)[1]) <= 10_000, reply)
        self.assertEqual(sum(self.count(user) for user in users), allowed + len(users))


class ConnectionPressure(Case):
    """Limits on the number of connections, in all and for each address, and on unused ones."""

    FLAGS = None

    def test_connections_are_limited_for_each_address(self):
        service = self.serve("--connections-per-address-maximum", "2")
        with LineConnection(service.port, source="127.0.0.2") as one, LineConnection(service.port, source="127.0.0.2") as two:
            self.assertEqual((one.send_command("PING"), two.send_command("PING")), ("+PONG", "+PONG"))
            with LineConnection(service.port, source="127.0.0.2") as refused:
                self.assertRegex(
                    refused.read_to_end(), rb"\A-OVERLOADED retry_ms=\d+ [^\r\n]*connections-per-address-maximum[^\r\n]*\r\n\Z"
                )
            with LineConnection(service.port, source="127.0.0.3") as other:
                self.assertEqual(other.send_command("PING"), "+PONG")
            one.close()

            def gets_in():
                with LineConnection(service.port, source="127.0.0.2") as connection:
                    try:
                        return connection.send_command("PING") == "+PONG"
                    except (Closed, OSError):
                        return False

            wait_until(gets_in, "room for another connection of that address")
            self.assertEqual(two.send_command("PING"), "+PONG")

    def test_an_incomplete_request_does_not_keep_a_connection_open(self):
        service = self.serve("--incomplete-request-timeout-ms", "400")
        user = self.user()
        for first in ("PING", f"SUBSCRIBE usage:{user}"):
            with self.subTest(first=first), service.connect() as trickle, service.connect() as other:
                trickle.send(first + "\n")
                trickle.read_lines(1 if first == "PING" else 6)
                started_at = time.monotonic()
                # Single bytes do not extend the timeout.
                wait_until(lambda: trickle.readable(0.02) or trickle.send("x"), "the end, or an answer")
                self.assertGreater(time.monotonic() - started_at, 0.35)
                self.assertEqual(trickle.read_to_end(), b"")
                self.assertEqual(other.send_command("PING"), "+PONG")

    def test_a_connection_that_completes_its_requests_is_kept_however_they_are_split(self):
        service = self.serve("--incomplete-request-timeout-ms", "500")

        def is_kept():
            with service.connect() as connection:
                for _ in range(12):
                    started_at = time.monotonic()
                    try:
                        connection.send("PI")
                        connection.readable(0.1)
                        connection.send("NG\n")
                        self.assertEqual(connection.read_line(), "+PONG")
                    except (Closed, OSError):
                        # On a slow machine the test may not complete the request in time.
                        self.assertGreater(time.monotonic() - started_at, 0.45)
                        return False
            return True

        wait_until(is_kept, "an attempt during which the machine is quick enough")

    def test_two_thousand_reconnects_at_once_are_served_and_leave_nothing_behind(self):
        service = self.serve()
        user = self.user()
        service.send_command(f"CONSUME {user}")
        before = descriptors(service)
        failures = []

        def reconnect(turns):
            try:
                for turn in range(turns):
                    connection = service.connect()
                    reply = connection.send_command(f"USAGE {user}")
                    if not reply.startswith("+OK "):
                        failures.append(reply)
                    if turn % 2:
                        connection.reset()
                    else:
                        connection.close()
            except (Closed, OSError, AssertionError) as error:
                failures.append(repr(error))

        threads = [threading.Thread(target=reconnect, args=(20,)) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * TIMEOUT_SECONDS)
        self.assertEqual(failures, [])
        self.assertGreaterEqual(int(service.info()["connections_total"]), 2_000)
        wait_until(lambda: service.info()["connections"] == "1", "all of them are closed")
        wait_until(lambda: descriptors(service) <= before + 2, "their descriptors are free again")

    def test_where_the_system_allows_few_descriptors_further_connections_get_an_error(self):
        service = self.serve(binary=limited("ulimit -n 200"))
        self.assertIn("the system allows fewer descriptors than connections-maximum needs", service.log())
        connections = []
        try:
            for _ in range(150):
                connections.append(service.connect())
                connections[-1].send("PING\n")
            replies = []
            for connection in connections:
                try:
                    replies.append(connection.read_line().split(" ")[0])
                except Closed:
                    replies.append("closed")
            self.assertGreaterEqual(replies.count("+PONG"), 50)
            self.assertEqual(set(replies), {"+PONG", "-OVERLOADED"})
            self.assertIn("+ALLOWED ", connections[0].send_command(f"CONSUME {self.user()}"), "the database has a descriptor too")
        finally:
            for connection in connections:
                connection.close()

    def test_hostile_connections_have_their_memory_descriptors_and_sessions_bounded(self):
        """Benchmarks/hostile uses 4,096; a few are enough to notice a missing bound."""
        resource_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertGreater(resource_limit, 1_000)
        service = self.serve()
        user = self.user()
        service.send_command(f"CONSUME {user}")
        before, sessions_before = resident_bytes(service.process.pid), self.sessions()
        sockets = []
        try:
            for number in range(400):
                peer = socket.socket()
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                peer.connect(("127.0.0.1", service.port))
                peer.setblocking(False)
                sockets.append(peer)
                # None of them reads; a quarter sends nothing, a quarter half a request.
                data = (b"", b"ECHO " + b"x" * 1_000, b"HELP\n" * 1_000, f"USAGE {user}\n".encode() * 1_024)[number % 4]
                with contextlib.suppress(BlockingIOError):
                    peer.send(data)
            with service.connect() as good:
                for _ in range(20):
                    self.assertIn("+OK ", good.send_command(f"USAGE {user}"))
                info = service.info()
            self.assertGreaterEqual(int(info["connections"]), 390)
            self.assertLess(resident_bytes(service.process.pid, "VmHWM") - before, 256 << 20)
            self.assertLess(descriptors(service), 400 + 128)
            self.assertLessEqual(self.sessions(), sessions_before + 1)
        finally:
            for peer in sockets:
                peer.close()
        wait_until(lambda: service.info()["connections"] == "1", "closed connections are not counted")

    def sessions(self):
        return self.psql.number(
            "select count(*) from pg_stat_activity where application_name like 'headroom%' and datname = current_database()"
        )


NETWORK = """
import socket, sys
def connect():
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
    connection.sendall(b"PING\\n")
    assert connection.recv(100) == b"+PONG\\r\\n"
    return connection
listening, asking = connect(), connect()
asking.sendall(sys.argv[2].encode())
assert asking.recv(1)
print("connected", flush=True)
sys.stdin.readline()
"""


@needs_one_machine("the service has no network, and reaches workers by one")
class NetworkGone(Case):
    """A peer whose network is cut while a reply is sent, without FIN or RST."""

    FLAGS = None

    def test_a_peer_without_a_network_is_closed_after_the_output_timeout(self):
        if os.getuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
            self.skipTest("network namespaces need root, unshare, nsenter and ip")
        probe = processes.completed(["unshare", "--net", "ip", "link", "set", "lo", "up"])
        if probe.returncode != 0:
            self.skipTest(f"no network namespace can be made here: {probe.stderr.strip()}")
        # The database is on a Unix socket, so it is not affected.
        binary = processes.directory() + "/headroom"
        with open(binary, "w") as file:
            file.write(
                "#!/bin/sh\nexec unshare --net sh -c 'ip link set lo up && exec \"$0\" \"$@\"' "
                f'"{settings.binary}" "$@"\n'
            )
        os.chmod(binary, 0o755)
        service = self.serve("--output-timeout-ms", "1000", binary=binary)
        inside = ["nsenter", "--target", str(service.process.pid), "--net"]

        def established():
            """The service's side of its connections."""
            listed = processes.completed([*inside, "ss", "-Htno", "state", "established", "sport", "=", f":{service.port}"], check=True)
            return listed.stdout.splitlines()

        user = self.user()
        request = f"SUBSCRIBE usage:{user}\n"
        client = processes.start(
            [*inside, sys.executable, "-c", NETWORK, str(service.port), request],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            self.assertEqual(client.stdout.readline(), "connected\n")
            self.assertEqual(len(established()), 2)
            wait_until(
                lambda: all(re.search(r"timer:\(keepalive,[1-5]?\dsec", line) for line in established()),
                lambda: f"idle peers are probed within a minute: {established()}",
            )
            subprocess.run([*inside, "ip", "link", "set", "lo", "down"], check=True)
            # A reply that the peer does not acknowledge.
            self.psql.run(f"select increment_and_check_usage('{user}')")
            wait_until(lambda: len(established()) == 1, "the subscriber without a network is closed")
        finally:
            processes.stop(client)
