"""SIGTERM and SIGINT: every accepted request is answered, then the service ends."""

import re
import signal
import socket
import threading

from support import processes
from support.case import Case
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer


class Stopping(Case):
    FLAGS = None

    @classmethod
    def serve(cls, *flags, **options):
        # Longer than the tests wait, so that nothing ends because of the drain timeout.
        return super().serve("--drain-timeout-ms", "300000", *flags, **options)

    def pipelining_client(self, service, user, replies, started):
        """Sends and reads until the service ends the connection; the replies are checked afterwards."""
        connection = service.connect()
        sent = [0]

        def send():
            try:
                while True:
                    connection.send("".join(f"CONSUME {user}\nECHO {sent[0] + index}\n" for index in range(20)))
                    sent[0] += 20
            except OSError:
                pass

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        started.release()
        received = connection.read_to_end()
        replies[user] = received
        connection.close()
        sender.join()

    def stop_under_load(self, number):
        service = self.serve()
        users = [self.subscriber_of(service) for _ in range(8)]
        replies, started = {}, threading.Semaphore(0)
        threads = [threading.Thread(target=self.pipelining_client, args=(service, user, replies, started), daemon=True) for user in users]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.assertTrue(started.acquire(timeout=TIMEOUT_SECONDS))
        before = int(service.info()["requests"])
        wait_until(lambda: int(service.info()["requests"]) > before + 1_000, "the load runs")
        service.signal(number)
        self.assertEqual(service.wait(), 0, service.log())
        for thread in threads:
            thread.join(TIMEOUT_SECONDS)
        return service, users, replies

    def subscriber_of(self, service):
        user = self.user()
        self.assertIn("+OK ", service.send_command(f"SETPLAN {user} pro"))
        return user

    def check_replies(self, user, received):
        """Checks that the replies are those of the first requests, in order, then at most one -DRAINING, and that every counted message
        was answered."""
        lines = received.decode().split("\r\n")
        self.assertEqual(lines.pop(), "", "whole lines only")
        if lines and lines[-1].startswith("-DRAINING "):
            lines.pop()
        for index, line in enumerate(lines):
            if index % 2:
                self.assertEqual(line, f"+{index // 2}")
            else:
                self.assertEqual(Answer(line).used, index // 2 + 1)
        self.assertEqual(self.count(user), (len(lines) + 1) // 2, "everything counted was answered, and the reverse")

    def test_sigterm_under_load_answers_every_accepted_request_and_ends_with_0(self):
        service, users, replies = self.stop_under_load(signal.SIGTERM)
        for user in users:
            with self.subTest(user=user):
                self.check_replies(user, replies[user])
        self.assertRegex(service.output(), rf"\Aready listen=127\.0\.0\.1:{service.port} http=\S+\n\Z")

    def test_sigint_under_load_answers_every_accepted_request_and_ends_with_0(self):
        _, users, replies = self.stop_under_load(signal.SIGINT)
        for user in users:
            with self.subTest(user=user):
                self.check_replies(user, replies[user])

    def test_logs_name_no_user_and_have_one_line_about_draining(self):
        service, users, _ = self.stop_under_load(signal.SIGTERM)
        log = service.log()
        self.assertIn("msg=draining", log)
        for user in users:
            self.assertNotIn(user, log)
            self.assertNotIn(user.replace("-", ""), log)
        # One line an event, in the documented form; three plain lines come with the ready line.
        for line in log.splitlines():
            if not line.startswith(("try it:", "dashboard:", "open the data:")):
                self.assertRegex(line, r'^time=\S+ level=(info|notice|warning) msg=(\S+|".*")', line)
        self.assertLess(len(log.splitlines()), 40, "nothing per message")

    def test_a_service_that_is_ended_at_its_first_connection_ends_with_0(self):
        port = processes.free_port()
        service = self.serve("--listen", f"127.0.0.1:{port}", wait=False)
        connected = False
        while not connected:
            self.assertTrue(service.is_running, service.log())
            with socket.socket() as peer:
                connected = peer.connect_ex(("127.0.0.1", port)) == 0
        self.assertEqual(service.stop(), 0, service.log())

    def test_a_request_that_waits_for_the_database_is_answered_before_the_end(self):
        service = self.serve()
        user = self.subscriber_of(service)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        session = self.lock_rows(user)
        with service.connect() as connection:
            connection.send(f"CONSUME {user}\nPING\n")
            self.wait_until_blocked()
            service.signal(signal.SIGTERM)
            wait_until(lambda: "draining" in service.log(), "it drains")
            session.close()
            self.assertEqual(Answer(connection.read_line()).used, 2)
            self.assertEqual(connection.read_line(), "+PONG")
            self.assertRegex(connection.read_to_end(), rb"\A(-DRAINING [^\r\n]*\r\n)?\Z")
        self.assertEqual(service.wait(), 0)
        self.assertEqual(self.count(user), 2)

    def test_a_request_that_comes_while_it_drains_is_refused_and_not_counted(self):
        service = self.serve()
        user, other = self.subscriber_of(service), self.subscriber_of(service)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        session = self.lock_rows(user)
        with service.connect() as connection:
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            service.signal(signal.SIGTERM)
            wait_until(lambda: "draining" in service.log(), "it drains")
            connection.send(f"CONSUME {other}\nCONSUME {other}\n")
            session.close()
            received = connection.read_to_end()
        self.assertRegex(received, rb"\A\+ALLOWED [^\r\n]* used=2 [^\r\n]*\r\n-DRAINING [^\r\n]*\r\n\Z")
        self.assertEqual(service.wait(), 0)
        self.assertEqual(self.count(other), 0)

    def test_silent_connections_do_not_delay_the_end(self):
        service = self.serve()
        lines = [service.connect() for _ in range(50)]
        for line in lines[:25]:
            self.assertEqual(line.send_command("PING"), "+PONG")
        for line in lines[25:40]:
            line.send("CONSUME 7f1c")
        wait_until(lambda: service.info()["connections"] == "51", "all are connected")
        service.signal(signal.SIGTERM)
        self.assertEqual(service.wait(), 0)
        for line in lines:
            self.assertEqual(line.read_to_end(), b"")
            line.close()

    def test_new_connections_are_refused_while_it_drains(self):
        service = self.serve()
        user = self.subscriber_of(service)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        session = self.lock_rows(user)
        with service.connect() as connection:
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            service.signal(signal.SIGTERM)

            def is_refused():
                try:
                    service.connect().close()
                except ConnectionRefusedError:
                    return True
                except ConnectionResetError:
                    pass  # It waited to be accepted when the port was closed.
                return False

            wait_until(is_refused, "the port is closed")
            session.close()
            self.assertIn("+ALLOWED", connection.read_line())
        self.assertEqual(service.wait(), 0)

    def test_a_second_signal_does_not_interrupt_the_drain(self):
        service = self.serve()
        user = self.subscriber_of(service)
        with service.connect() as connection:
            connection.send(f"CONSUME {user}\n" * 1_000)
            connection.read_line()
            service.signal(signal.SIGTERM)
            wait_until(lambda: "draining" in service.log(), "it drains")
            service.signal(signal.SIGTERM)
            received = connection.read_to_end()
        self.assertEqual(service.wait(), 0)
        allowed = len(re.findall(rb"^\+ALLOWED ", received, re.M)) + 1
        self.assertEqual(self.count(user), allowed)
