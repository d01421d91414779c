"""Limits of one connection, and of the number of connections."""

import contextlib
import threading
import time

from support import citus, processes
from support.case import Case
from support.kernel import fill
from support.service import command
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer, Closed

REQUEST_SECONDS = 60
ONE_AT_A_TIME = ("--lanes", "1", "--batch-maximum", "1", "--request-timeout-ms", str(REQUEST_SECONDS * 1_000))


class ConnectionLimits(Case):
    FLAGS = None

    def test_a_silent_connection_is_closed_after_the_time_for_a_first_request(self):
        service = self.serve("--first-request-timeout-ms", "400")
        started_at = time.monotonic()
        with service.connect() as connection:
            self.assertEqual(connection.read_to_end(), b"")
        self.assertGreater(time.monotonic() - started_at, 0.35)

    def test_a_connection_that_trickles_one_request_is_closed(self):
        service = self.serve("--first-request-timeout-ms", "400")
        with service.connect() as connection:
            wait_until(lambda: connection.readable(0.02) or connection.send("x"), "the end, or an answer")
            self.assertEqual(connection.read_to_end(), b"")

    def test_a_connection_with_a_first_request_is_kept(self):
        service = self.serve("--first-request-timeout-ms", "300")

        def in_time():
            connection = service.connect()
            try:
                return connection.send_command("PING") == "+PONG" and connection
            except (Closed, OSError):
                connection.close()
                return None

        with wait_until(in_time, "a first request within the time") as connection, service.connect() as silent:
            # A later connection is closed, so the first one's timeout has passed as well.
            self.assertEqual(silent.read_to_end(), b"")
            self.assertEqual(connection.send_command("PING"), "+PONG")

    def test_an_idle_connection_is_closed_and_a_busy_one_is_kept(self):
        service = self.serve("--idle-timeout-ms", "1000")

        def idle_is_closed_and_busy_is_not():
            with service.connect() as idle, service.connect() as busy:
                started_at = sent = time.monotonic()
                try:
                    self.assertEqual(idle.send_command("PING"), "+PONG")
                    while not idle.readable(0.1):
                        asking = time.monotonic()
                        self.assertEqual(busy.send_command("PING"), "+PONG")
                        sent = asking
                    self.assertEqual(idle.read_to_end(), b"")
                    self.assertEqual(busy.send_command("PING"), "+PONG")
                except (Closed, OSError):
                    # On a slow machine the test may not have kept this connection busy.
                    self.assertGreater(time.monotonic() - sent, 0.9)
                    return False
                self.assertGreater(time.monotonic() - started_at, 0.9)
                return True

        wait_until(idle_is_closed_and_busy_is_not, "an attempt during which the machine is quick enough")

    def test_one_connection_too_many_gets_an_error_and_closing_one_makes_room(self):
        service = self.serve("--connections-maximum", "3")
        connections = [service.connect() for _ in range(3)]
        for connection in connections:
            self.assertEqual(connection.send_command("PING"), "+PONG")
        with service.connect() as refused:
            self.assertRegex(refused.read_to_end(), rb"\A-OVERLOADED retry_ms=\d+ [^\r\n]*\r\n\Z")
        for connection in connections:
            self.assertEqual(connection.send_command("PING"), "+PONG", "the others are unharmed")
        connections.pop().close()

        def gets_in():
            with service.connect() as connection:
                try:
                    return connection.send_command("PING") == "+PONG"
                except (Closed, BrokenPipeError, ConnectionResetError):
                    return False

        wait_until(gets_in, "room for another connection")
        for connection in connections:
            connection.close()

    def test_one_connection_too_many_with_pipelined_requests_reads_the_error_and_the_end(self):
        service = self.serve("--connections-maximum", "1")
        with service.connect() as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            # The requests arrive before the service accepts the connection; closing it with them unread would be a reset.
            processes.pause(service.process.pid)
            try:
                refused = service.connect()
                refused.send("PING\n" * 1_000)
            finally:
                processes.resume(service.process.pid)
            with refused:
                self.assertRegex(refused.read_line(), r"\A-OVERLOADED retry_ms=\d+ ")
                with self.assertRaisesRegex(Closed, "^end; unfinished b''$"):
                    refused.read_line()
            self.assertEqual(connection.send_command("PING"), "+PONG")

    def test_a_command_reports_that_there_are_too_many_connections(self):
        service = self.serve("--connections-maximum", "1")
        target = f"127.0.0.1:{service.port}"
        with service.connect() as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            # The refusal may arrive before the request is written, after it, or between.
            for _ in range(6):
                for arguments in (["status"], ["user", self.user()], ["report"], ["ask", "PING"]):
                    ran = command(*arguments, "--target", target)
                    self.assertEqual(ran.returncode, 69, ran.stderr)
                    # `ask` prints a reply on standard output, if it has sent a request before.
                    told = ran.stderr + ran.stdout if arguments[0] == "ask" else ran.stderr
                    self.assertIn("OVERLOADED retry_ms=1000 too many connections", told, arguments)

    def test_a_connection_too_many_that_sends_without_end_is_closed(self):
        service = self.serve("--connections-maximum", "1")
        with service.connect() as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            with service.connect() as refused:
                self.assertRegex(refused.read_line(), r"\A-OVERLOADED ")

                def is_closed():
                    try:
                        refused.send("PING\n")
                    except (BrokenPipeError, ConnectionResetError):
                        return True
                    return False

                wait_until(is_closed, "a refused connection whose peer keeps sending is closed")

    def test_answers_beyond_the_kernels_buffer_survive_the_half_close(self):
        service = self.serve()
        with service.connect() as connection:
            expected = fill(connection, service.port)
            connection.end_input()
            # A connection that only lingers would be closed by then.
            self.assertFalse(threading.Event().wait(0.5))
            self.assertEqual(len(connection.read_to_end()), expected)

    def test_more_requests_than_in_flight_maximum_are_all_answered(self):
        service = self.serve("--in-flight-maximum", "4")
        user = self.user()
        with service.connect() as connection:
            connection.send("".join(f"CONSUME {user}\nECHO {index}\n" for index in range(100)))
            connection.end_input()
            for index in range(100):
                self.assertEqual(Answer(connection.read_line()).used, index + 1)
                self.assertEqual(connection.read_line(), f"+{index}")
            self.assertEqual(connection.read_to_end(), b"")

    def test_many_times_in_flight_maximum_without_the_database_are_all_answered(self):
        service = self.serve("--in-flight-maximum", "4")
        with service.connect() as connection:
            connection.send("".join(f"ECHO {index}\n" for index in range(100)))
            for index in range(100):
                self.assertEqual(connection.read_line(), f"+{index}")
            self.assertFalse(connection.readable(0.05))
            connection.send("".join(f"ECHO {index}\n" for index in range(100)))
            connection.end_input()
            self.assertEqual(connection.read_to_end(), "".join(f"+{index}\r\n" for index in range(100)).encode())

    def test_requests_over_in_flight_maximum_are_not_read(self):
        service = self.serve("--in-flight-maximum", "4")
        users = [self.user() for _ in range(100)]
        with service.connect() as warm:
            for user in users:
                self.assertIn("+ALLOWED", warm.send_command(f"CONSUME {user}"))
        before = int(service.info()["requests"])
        locks = self.cluster.session(self.database)
        locks.run("begin")
        locks.run("lock table message_usage in access exclusive mode")
        try:
            with service.connect() as connection:
                connection.send("".join(f"CONSUME {user}\n" for user in users))
                self.wait_until_blocked()
                self.assertFalse(connection.readable(0.2), "nothing can be counted now")
                info = service.info()
                self.assertLessEqual(int(info["queue_depth"]) + int(info["requests"]) - before, 4)
                locks.run("rollback")
                for user in users:
                    self.assertRegex(connection.read_line(), rf"^(\+ALLOWED user={user} |-UNAVAILABLE )")
        finally:
            locks.close()

    def while_the_table_is_locked(self, attempt):
        """Calls `attempt` with a function that is true until a statement may have waited for the lock as long as it may,
        after which the queue moves on, and with the session that holds the lock. `attempt` returns whether it was in time."""

        def is_quick_enough():
            locks = self.cluster.session(self.database)
            locks.run("begin")
            locks.run("lock table message_usage in access exclusive mode")
            until = time.monotonic() + REQUEST_SECONDS / 4 - 1
            try:
                return attempt(lambda: time.monotonic() < until, locks)
            finally:
                locks.close()

        wait_until(is_quick_enough, "an attempt during which the machine is quick enough")

    def test_a_full_queue_is_answered_overloaded_at_once_and_counts_nothing(self):
        service = self.serve("--queue-maximum", "64", *ONE_AT_A_TIME)

        def are_overloaded(in_time, locks):
            users = [self.user() for _ in range(300)]
            with service.connect() as connection:
                connection.send(f"CONSUME {users[0]}\n")
                self.wait_until_blocked()
                connection.send("".join(f"CONSUME {user}\n" for user in users[1:]))
                while int(service.info()["queue_depth"]) != 64:
                    if not in_time():
                        return False
                locks.run("rollback")
                replies = [connection.read_line() for _ in users]
            overloaded = [reply for reply in replies if reply.startswith("-OVERLOADED retry_ms=")]
            for user, reply in zip(users[1:], replies[1:]):
                self.assertEqual(self.count(user), 1 if reply.startswith("+ALLOWED") else 0, reply)
            self.assertGreaterEqual(len(overloaded), 200)
            return True

        self.while_the_table_is_locked(are_overloaded)

    def test_a_refused_burst_gets_an_error_for_each_request(self):
        """Each refusal makes room for the next request that was read with it, which is refused as well."""
        # The lanes share the queue: 64 for that of the user.
        queue = 64 * (citus.WORKERS if citus.is_asked_for() else 1)
        service = self.serve("--queue-maximum", str(queue), "--in-flight-maximum", "16", *ONE_AT_A_TIME)

        def are_all_refused(in_time, _):
            user = self.user()
            with contextlib.ExitStack() as stack:
                first, *others, last = [stack.enter_context(service.connect()) for _ in range(7)]
                first.send(f"CONSUME {user}\n")
                self.wait_until_blocked()
                for other in others:
                    other.send(f"CONSUME {user}\n" * 16)
                while int(service.info()["queue_depth"]) != 64:
                    if not in_time():
                        return False
                last.send(f"CONSUME {user}\n" * 200)
                replies = {reply.split(" ")[0] for reply in last.read_lines(200)}
            if in_time():
                self.assertEqual(replies, {"-OVERLOADED"})
            return in_time()

        self.while_the_table_is_locked(are_all_refused)

    def test_a_peer_that_does_not_read_its_replies_is_closed_and_others_are_served(self):
        service = self.serve("--output-timeout-ms", "300")
        user = self.user()
        with service.connect() as greedy, service.connect() as other:
            closed_event = threading.Event()

            def send():
                try:
                    while True:
                        greedy.send("HELP\n" * 1_000)
                except OSError:
                    closed_event.set()

            threading.Thread(target=send, daemon=True).start()
            greedy.socket.settimeout(None)
            for used in range(1, 51):
                self.assertEqual(other.answer(f"CONSUME {user}").used, used, "the other connection is served")
            self.assertTrue(closed_event.wait(TIMEOUT_SECONDS), "the peer that does not read was not closed")
            wait_until(lambda: service.info()["connections"] == "2", "only two connections are left")

    def test_a_peer_that_reads_slowly_gets_everything(self):
        service = self.serve("--output-timeout-ms", "300000")
        with service.connect() as connection:
            threading.Thread(target=lambda: connection.send("HELP\n" * 3_000), daemon=True).start()
            for _ in range(3_000):
                header = connection.read_line()
                self.assertEqual(header[0], "*")
                for entry in connection.read_lines(int(header[1:])):
                    self.assertEqual(entry[0], "+")

    def test_invalid_settings_are_refused_with_their_range(self):
        for flags in (["--in-flight-maximum", "0"], ["--unknown-users", "vip"], ["--request-timeout-ms", "1e3"],
                      ["--when-unavailable", "perhaps"], ["--lanes", "-1"]):  # fmt: skip
            with self.subTest(flags=flags):
                service = self.serve(*flags, wait=False)
                self.assertNotEqual(service.wait(), 0)
                self.assertIn(flags[0].removeprefix("--"), service.log())
                self.assertEqual(service.output(), "")
