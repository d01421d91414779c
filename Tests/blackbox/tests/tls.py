"""TLS on the port of the line protocol: accepted and refused clients, the same behaviour as without TLS, and reloading certificates."""

import os
import shutil
import signal
import ssl
import threading
import time

import redis
from support import processes
from support.case import LONG_TIMEOUTS, Case
from support.certificates import Authority, openssl
from support.postgres import Cluster
from support.processes import resident_bytes
from support.records import RecordClient
from support.service import Service
from support.waiting import wait_until
from support.wire import Answer, Closed, LineConnection, array


class TLS(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority = Authority()
        cls.certificate, cls.key = cls.authority.server()
        cls.service = cls.serve_tls()

    @classmethod
    def serve_tls(cls, *flags, certificate=None, key=None, **options):
        service = cls.serve("--tls-certificate", certificate or cls.certificate, "--tls-key", key or cls.key, *flags, **options)
        service.tls = cls.authority.client_context()
        return service

    def own_files(self, name="localhost"):
        """A copy of certificate and key, for tests that replace them."""
        directory = processes.directory()
        certificate, key = self.authority.server(name, file=f"own-{os.path.basename(directory)}")
        return shutil.copy(certificate, directory + "/server.pem"), shutil.copy(key, directory + "/server.key")

    def serial(self, service):
        """The serial number of the certificate that the service presents."""
        with service.connect() as connection:
            return connection.socket.getpeercert()["serialNumber"]

    # Admission

    def test_tls_1_2_and_1_3_count_messages(self):
        user = self.user()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version.name):
                context = self.authority.client_context()
                context.minimum_version = context.maximum_version = version
                with LineConnection(self.service.port, tls=context) as connection:
                    self.assertEqual(connection.socket.version().replace(".", "_"), version.name)
                    self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("+ALLOWED "))
        self.assertEqual(self.count(user), 2)
        self.assertEqual(self.service.info()["tls"], "on")

    def test_older_versions_of_tls_are_refused(self):
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with self.subTest(version=version.name):
                context = self.authority.client_context()
                # Otherwise this client would refuse the version itself.
                context.set_ciphers("DEFAULT@SECLEVEL=0")
                context.minimum_version = context.maximum_version = version
                with self.assertRaises(ssl.SSLError) as raised:
                    LineConnection(self.service.port, tls=context)
                self.assertIn("PROTOCOL_VERSION", str(raised.exception))
        self.assertEqual(self.send_command("PING"), "+PONG")

    def test_plain_text_gets_an_error_in_plain_text_and_nothing_is_counted(self):
        user = self.user()
        with self.service.connect() as neighbour:
            for request in (
                f"CONSUME {user}\n", array("CONSUME", user), "GET / HTTP/1.1\r\n\r\n", "\r\nPING\n", b"\x80\x2e\x01", "P"
            ):  # fmt: skip
                with self.subTest(request=request), LineConnection(self.service.port) as connection:
                    connection.send(request)
                    self.assertRegex(connection.read_to_end(), rb"\A-PROTOCOL this port speaks TLS; [^\r\n]*\r\n\Z")
                self.assertEqual(neighbour.send_command("PING"), "+PONG")
        self.assertEqual(self.count(user), 0)

    def test_plain_text_after_the_refusal_is_discarded(self):
        with LineConnection(self.service.port) as connection:
            connection.send(b"CONSUME x\n" * 50_000)
            self.assertRegex(connection.read_to_end(), rb"\A-PROTOCOL this port speaks TLS; [^\r\n]*\r\n\Z")

    def test_tls_to_a_port_without_it_is_refused_and_the_client_shows_the_reason(self):
        service = self.serve()
        with self.assertRaises(ssl.SSLError) as raised:
            LineConnection(service.port, tls=self.authority.client_context())
        self.assertIn("WRONG_VERSION_NUMBER", str(raised.exception))
        self.assertEqual(service.info()["tls"], "off")
        self.assertNotIn("tls_handshakes_failed", service.info())

    def test_a_client_without_the_ca_ends_the_handshake(self):
        before = int(self.service.info()["tls_handshakes_failed"])
        with self.assertRaises(ssl.SSLCertVerificationError):
            LineConnection(self.service.port, tls=ssl.create_default_context())
        wait_until(lambda: int(self.service.info()["tls_handshakes_failed"]) == before + 1, "the handshake counts as failed")

    # Client certificates

    def client_outcome(self, service, context):
        """The answer to PING, or how the connection ended."""
        try:
            with LineConnection(service.port, tls=context) as connection:
                return connection.send_command("PING")
        except (ssl.SSLError, Closed, OSError) as error:
            return str(error)

    def test_only_client_certificates_of_the_ca_are_accepted(self):
        clients, strangers = Authority("Clients"), Authority("Clients")
        service = self.serve_tls("--tls-client-ca", clients.certificate)
        right = self.authority.client_context(clients.issue("backend"))
        self.assertEqual(self.client_outcome(service, right), "+PONG")
        none = self.client_outcome(service, self.authority.client_context())
        self.assertRegex(none, "(?i)certificate.required")
        stranger = self.client_outcome(service, self.authority.client_context(strangers.issue("backend")))
        self.assertRegex(stranger, "(?i)unknown.ca|certificate.unknown|bad.certificate|decrypt")
        expired = self.client_outcome(service, self.authority.client_context(clients.issue("late", days=-1)))
        self.assertRegex(expired, "(?i)certificate")
        self.assertNotEqual(expired, "+PONG")
        self.assertEqual(self.client_outcome(service, right), "+PONG", "the others are unharmed")

    def test_sighup_reloads_the_client_ca(self):
        directory = processes.directory()
        first, second = Authority("First"), Authority("Second")
        ca = shutil.copy(first.certificate, directory + "/ca.pem")
        service = self.serve_tls("--tls-client-ca", ca)
        old = self.authority.client_context(first.issue("backend"))
        new = self.authority.client_context(second.issue("backend"))
        self.assertEqual(self.client_outcome(service, old), "+PONG")
        shutil.copy(second.certificate, ca)
        service.signal(signal.SIGHUP)
        wait_until(lambda: self.client_outcome(service, new) == "+PONG", "clients of the new CA get in")
        self.assertNotEqual(self.client_outcome(service, old), "+PONG")

    # Timeouts

    def in_time(self, make):
        """A connection with a completed handshake; on a slow machine the first attempts may time out."""

        def created():
            try:
                return make()
            except (Closed, OSError):
                return None

        return wait_until(created, "a handshake within the time")

    def test_a_stalled_handshake_is_closed(self):
        service = self.serve_tls("--tls-handshake-timeout-ms", "400")
        hello = RecordClient(service.port, service.tls, handshake=False).hello()
        for sent in (b"", hello[:1], hello[:20], hello):
            started_at = time.monotonic()
            with self.subTest(bytes=len(sent)), LineConnection(service.port) as connection:
                connection.send(sent)
                received = connection.read_to_end()
                self.assertGreater(time.monotonic() - started_at, 0.35)
                # The service's part of the handshake, which this client does not answer.
                self.assertEqual(received != b"", sent == hello)
        with self.in_time(service.connect) as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")

    def test_a_trickling_handshake_is_closed(self):
        service = self.serve_tls("--tls-handshake-timeout-ms", "400")
        hello = RecordClient(service.port, service.tls, handshake=False).hello()
        started_at = time.monotonic()
        with LineConnection(service.port) as connection:
            for byte in hello:
                if connection.readable(0.02):
                    break
                connection.send(bytes([byte]))
            self.assertEqual(connection.read_to_end(), b"")
        self.assertGreater(time.monotonic() - started_at, 0.35)

    def test_the_handshake_timeout_does_not_end_completed_handshakes(self):
        service = self.serve_tls("--tls-handshake-timeout-ms", "1000")
        with self.in_time(service.connect) as connection, LineConnection(service.port) as stalled:
            # A later connection is closed, so the first one's timeout has passed as well.
            self.assertEqual(stalled.read_to_end(), b"")
            self.assertEqual(connection.send_command("PING"), "+PONG")

    def test_a_connection_without_a_first_request_is_closed_with_close_notify(self):
        service = self.serve_tls("--first-request-timeout-ms", "400")
        started_at = time.monotonic()
        with self.in_time(lambda: RecordClient(service.port, service.tls)) as client:
            self.assertEqual(client.read_to_end(), (b"", True))
        self.assertGreater(time.monotonic() - started_at, 0.35)

    # As without TLS

    def test_ten_thousand_pipelined_requests_are_answered_in_order(self):
        with self.service.connect() as connection:
            # OpenSSL allows a connection to one thread at a time. The replies fit into the kernel's buffers meanwhile.
            connection.send("".join(f"ECHO {n}\n" for n in range(10_000)))
            self.assertEqual(connection.read_lines(10_000), [f"+{n}" for n in range(10_000)])

    def test_a_request_may_come_in_records_of_a_byte_each(self):
        user = self.user()
        with RecordClient(self.service.port, self.service.tls) as client:
            for byte in f"CONSUME {user}\nQUIT\n".encode():
                client.send(bytes([byte]))
            received, _ = client.read_to_end()
            self.assertTrue(received.startswith(b"+ALLOWED "), received)
        self.assertEqual(self.count(user), 1)

    def test_after_either_kind_of_half_close_every_complete_request_is_answered_and_a_cut_one_is_not_executed(self):
        for kind in ("close_notify", "end of the connection only", "both"):
            with self.subTest(kind=kind), RecordClient(self.service.port, self.service.tls) as client:
                user = self.user()
                requests = "".join(f"CONSUME {user}\nECHO {n}\n" for n in range(50)) + f"CONSUME {user} 10"
                client.send(requests.encode())
                if kind != "end of the connection only":
                    client.send_close_notify()
                if kind != "close_notify":
                    client.socket.shutdown(1)
                received, is_clean = client.read_to_end()
                lines = received.decode().split("\r\n")
                self.assertEqual(lines.pop(), "")
                self.assertEqual(lines[1::2], [f"+{n}" for n in range(50)])
                self.assertEqual([Answer(line).used for line in lines[::2]], list(range(1, 51)))
                self.assertTrue(is_clean, "the service ends with close_notify")
                self.assertEqual(self.count(user), 50)

    def test_quit_is_answered_and_the_connection_ends_cleanly(self):
        with RecordClient(self.service.port, self.service.tls) as client:
            client.send(b"QUIT\n")
            self.assertEqual(client.read_to_end(), (b"+OK\r\n", True))

    def test_a_slow_reader_gets_the_last_answers(self):
        plain = self.serve()
        for service in (plain, self.service):
            with self.subTest(tls=service.tls is not None):
                count = 6_000
                text = "x" * 900
                requests = "".join(f"ECHO {n}{text}\n" for n in range(count)).encode()
                client = RecordClient(service.port, service.tls) if service.tls else LineConnection(service.port)

                def send():
                    if service.tls:
                        client.session.write(requests)
                        client.send_close_notify()
                    else:
                        client.send(requests)
                        client.end_input()

                sender = threading.Thread(target=send)
                sender.start()
                # A closed connection lingers for less.
                sender.join(1)
                received = client.read_to_end()[0] if service.tls else client.read_to_end()
                sender.join()
                lines = received.decode().split("\r\n")
                self.assertEqual([line.strip("+x") for line in lines[:-1]], [str(n) for n in range(count)])
                client.socket.close()

    def test_a_connection_keeps_no_memory_of_long_answers(self):
        service = self.serve_tls()
        connections = [service.connect() for _ in range(40)]
        for connection in connections:
            self.assertEqual(connection.send_command("PING"), "+PONG")
        before = resident_bytes(service.process.pid)
        for connection in connections:
            # Much is answered in one iteration of the event loop.
            connection.send("ECHO " + "x" * 900 + "\n")
            connection.read_line()
            connection.send("HELP\n" * 500 + "ECHO over\n")
            while connection.read_line() != "+over":
                pass
        bytes_each = (resident_bytes(service.process.pid) - before) / len(connections)
        self.assertLess(bytes_each, 100_000)
        for connection in connections:
            connection.close()

    def test_one_connection_too_many_gets_an_error(self):
        service = self.serve_tls("--connections-maximum", "2")
        connections = [service.connect() for _ in range(2)]
        for connection in connections:
            self.assertEqual(connection.send_command("PING"), "+PONG")
        with service.connect() as refused:
            self.assertRegex(refused.read_to_end(), rb"\A-OVERLOADED retry_ms=\d+ [^\r\n]*\r\n\Z")
        for connection in connections:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            connection.close()

    def test_connections_without_a_handshake_take_few_descriptors(self):
        service = self.serve_tls("--connections-maximum", "2")
        with service.connect() as first:
            self.assertEqual(first.send_command("PING"), "+PONG")
            silent = [LineConnection(service.port) for _ in range(1_500)]
            descriptors = f"/proc/{service.process.pid}/fd"
            wait_until(lambda: len(os.listdir(descriptors)) < 130, "the rest is closed without a word")
            self.assertEqual(first.send_command("PING"), "+PONG")
            for connection in silent:
                connection.close()

    def test_draining_answers_accepted_requests_and_ends_the_rest(self):
        service = self.serve_tls("--drain-timeout-ms", "300000")
        user = self.user()
        with service.connect() as busy, service.connect() as silent, LineConnection(service.port) as unshaken:
            self.assertEqual(silent.send_command("PING"), "+PONG")
            self.assertEqual(busy.send_command("PING"), "+PONG")
            blocker = self.cluster.session(self.database)
            blocker.run("begin; lock table message_usage in share row exclusive mode")
            busy.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            service.signal(signal.SIGTERM)
            self.assertEqual(silent.read_to_end(), b"")
            blocker.run("commit")
            self.assertTrue(busy.read_line().startswith("+ALLOWED "))
            self.assertEqual(busy.read_to_end(), b"")
            self.assertEqual(unshaken.read_to_end(), b"")
            blocker.close()
        self.assertEqual(service.wait(), 0)
        self.assertEqual(self.count(user), 1)

    # Client libraries

    def test_redis_cli_and_redis_py_speak_tls(self):
        user = self.user()
        outcome = processes.completed(
            ["redis-cli", "-h", "localhost", "-p", str(self.service.port), "--tls", "--cacert", self.authority.certificate, "CONSUME", user]
        )
        self.assertTrue(outcome.stdout.startswith("ALLOWED "), outcome)
        self.assertRegex(self.service.log(), r"try it: +headroom ask --target 127.0.0.1:\d+ --tls-ca CA 'CONSUME [0-9a-f-]+'\n")
        for protocol in (2, 3):
            client = redis.Redis(
                host="localhost", port=self.service.port, protocol=protocol, ssl=True,
                ssl_ca_certs=self.authority.certificate, decode_responses=True,
            )  # fmt: skip
            pipeline = client.pipeline(transaction=False)
            for _ in range(20):
                pipeline.execute_command("CONSUME", user)
            self.assertTrue(all(reply.startswith("ALLOWED ") for reply in pipeline.execute()))
            client.close()
        self.assertEqual(self.count(user), 41)

    # New certificates

    def test_sighup_loads_a_new_certificate_and_keeps_open_connections(self):
        certificate, key = self.own_files()
        service = self.serve_tls(certificate=certificate, key=key)
        before = self.serial(service)
        with service.connect() as open_line:
            self.assertEqual(open_line.send_command("PING"), "+PONG")
            new = self.authority.server(file="renewed")
            shutil.copy(new[0], certificate)
            shutil.copy(new[1], key)
            self.assertEqual(self.serial(service), before, "nothing happens before the signal")
            service.signal(signal.SIGHUP)
            wait_until(lambda: self.serial(service) != before, "the new certificate is presented")
            self.assertEqual(open_line.send_command("PING"), "+PONG")
        self.assertRegex(service.log(), r'msg="TLS certificate reloaded" .*tls.expires=\d{4}-\d\d-\d\dT.*tls.subject=localhost')

    def test_a_bad_file_changes_nothing_and_is_named(self):
        expired = self.authority.server(file="expired", days=-1)
        other = self.authority.server(file="other")
        rubbish = self.authority.directory + "/rubbish"
        with open(rubbish, "w") as file:
            file.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        for what, take, error in (
            ("no file", lambda certificate, key: os.remove(key), r"server\.key cannot be read: No such file"),
            ("rubbish", lambda certificate, key: shutil.copy(rubbish, certificate), "server.pem has no valid certificate"),
            ("half a file", lambda certificate, key: os.truncate(key, 100), "server.key has no valid private key"),
            ("another's key", lambda certificate, key: shutil.copy(other[1], key), "does not belong to"),
            ("expired", lambda *files: [shutil.copy(*pair) for pair in zip(expired, files)], "expired on 20"),
        ):  # fmt: skip
            with self.subTest(what):
                certificate, key = self.own_files()
                service = self.serve_tls(certificate=certificate, key=key)
                before = self.serial(service)
                take(certificate, key)
                service.signal(signal.SIGHUP)
                wait_until(lambda: "the previous ones stay in use" in service.log(), "the log line")
                self.assertRegex(service.log(), f"level=error .*{error}")
                self.assertNotIn("/Sources/", service.log())
                self.assertEqual(self.serial(service), before)
                service.stop()

    def test_sighup_before_the_first_connection_does_not_end_the_service(self):
        service = self.serve_tls()
        for _ in range(20):
            service.signal(signal.SIGHUP)
        self.assertEqual(service.send_command("PING"), "+PONG")

    def test_sighup_before_the_database_answers_loads_the_new_certificate(self):
        certificate, key = self.own_files()
        cluster = Cluster()
        try:
            database = cluster.new_database(True)
            cluster.stop()
            service = Service(
                "--tls-certificate", certificate, "--tls-key", key, database_url=cluster.url(database), wait=False, env=LONG_TIMEOUTS
            )
            service.tls = self.authority.client_context()
            wait_until(lambda: "the database cannot be reached yet" in service.log(), "the service waits for its database")
            new = self.authority.server(file="in-time")
            shutil.copy(new[0], certificate)
            shutil.copy(new[1], key)
            service.signal(signal.SIGHUP)
            wait_until(lambda: "TLS certificate reloaded" in service.log() or not service.is_running, "the new certificate is read")
            self.assertTrue(service.is_running, "the signal has ended the service")
            cluster.start()
            service.ready()
            shown = processes.completed(["openssl", "x509", "-in", new[0], "-noout", "-serial"], check=True)
            self.assertEqual(f"serial={self.serial(service)}", shown.stdout.strip())
            service.stop()
        finally:
            cluster.end()

    # Starting

    def assert_does_not_start(self, error, *flags):
        service = self.serve(*flags, wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertEqual(service.output(), "")
        self.assertRegex(service.log(), error)
        self.assertLess(len(service.log().splitlines()), 4, service.log())

    def test_unusable_files_are_named_at_the_start(self):
        other = self.authority.server(file="another")
        locked = self.authority.directory + "/locked.key"
        openssl("ec", "-in", self.key, "-aes256", "-passout", "pass:secret", "-out", locked)
        for error, certificate, key in (
            ("/nowhere cannot be read: No such file or directory", "/nowhere", self.key),
            ("/nowhere cannot be read: No such file or directory", self.certificate, "/nowhere"),
            ("localhost.key has no valid certificate in PEM form", self.key, self.key),
            ("localhost.pem has no valid private key in PEM form", self.certificate, self.certificate),
            ("another.key does not belong to the first certificate in .*localhost.pem", self.certificate, other[1]),
            ("locked.key has no valid private key in PEM form, or the key has a passphrase", self.certificate, locked),
            ("/ is not a regular file", "/", self.key),
        ):
            with self.subTest(error):
                self.assert_does_not_start(error, "--tls-certificate", certificate, "--tls-key", key)
        self.assert_does_not_start(
            "/nowhere cannot be read", "--tls-certificate", self.certificate, "--tls-key", self.key, "--tls-client-ca", "/nowhere"
        )

    def test_incomplete_tls_settings_are_refused(self):
        self.assert_does_not_start("tls-certificate and tls-key go together", "--tls-certificate", self.certificate)
        self.assert_does_not_start("tls-certificate and tls-key go together", "--tls-key", self.key)
        self.assert_does_not_start("tls-client-ca needs tls-certificate", "--tls-client-ca", self.certificate)

    def test_a_world_readable_key_and_an_expired_certificate_are_logged_and_used(self):
        certificate, key = self.own_files()
        os.chmod(key, 0o644)
        service = self.serve_tls(certificate=certificate, key=key)
        self.assertRegex(service.log(), "level=warning .*everybody on this machine may read the key")
        self.assertEqual(service.send_command("PING"), "+PONG")
        expired = self.authority.server(file="gone", days=-1)
        service = self.serve_tls(certificate=expired[0], key=expired[1])
        self.assertRegex(service.log(), "level=error .*the TLS certificate has expired")
        self.assertNotIn("may read the key", service.log())
        with self.assertRaises(ssl.SSLCertVerificationError):
            service.connect()

    def test_nothing_of_the_key_is_logged(self):
        with open(self.key) as file:
            secret = file.read().splitlines()[1]
        service = self.serve_tls("--log-level", "trace")
        self.assertEqual(service.send_command("PING"), "+PONG")
        with LineConnection(service.port) as connection:
            connection.send("x\n")
            connection.read_to_end()
        self.assertNotIn(secret[:20], service.log())
        self.assertNotIn("/Sources/", service.log(), "the library's own words, with places in its sources")
