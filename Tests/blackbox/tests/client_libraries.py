"""redis-cli, redis-py and hiredis on the port of the line protocol."""

import asyncio
import os
import shutil
import subprocess
import tempfile

import redis
import redis.asyncio
from support import citus, processes
from support.case import MID_MONTH, Case
from support.waiting import TIMEOUT_SECONDS

HIREDIS = r"""
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints each reply's type and text: one command, ten pipelined, a list, an error. */
static void show(redisReply *reply) {
    if (!reply) { puts("no reply"); exit(1); }
    printf("%d %s\n", reply->type, reply->type == REDIS_REPLY_ARRAY ? "" : reply->str);
    for (size_t i = 0; i < reply->elements; i++) show(reply->element[i]);
    if (reply->elements == 0 || reply->type == REDIS_REPLY_ARRAY) return;
}
int main(int argc, char **argv) {
    redisContext *context = redisConnect("127.0.0.1", atoi(argv[1]));
    if (!context || context->err) { puts("not connected"); return 1; }
    redisReply *reply;
    show(redisCommand(context, "CONSUME %s", argv[2]));
    for (int i = 0; i < 10; i++) redisAppendCommand(context, "CONSUME %s %d", argv[2], 2);
    for (int i = 0; i < 10; i++) { if (redisGetReply(context, (void **)&reply)) return 2; show(reply); }
    show(redisCommand(context, "HISTORY %s", argv[2]));
    show(redisCommand(context, "CONSUME nobody"));
    show(redisCommand(context, "PING"));
    show(redisCommand(context, "ECHO %s", "two words"));
    reply = redisCommand(context, "INFO");
    printf("%d %.8s\n", reply->type, reply->str);
    return argc == 3 ? 0 : 1;
}
"""


class ClientLibraries(Case):
    CLOCK = MID_MONTH
    SHARED = True

    def redis_cli(self, *arguments, input=None):
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli is not installed (redis-tools)")
        outcome = processes.completed(["redis-cli", "-p", str(self.service.port), *arguments], input=input)
        return outcome.stdout.rstrip("\n")

    def test_redis_cli_consumes_lists_and_shows_errors_in_both_versions(self):
        for flags in ([], ["-3"]):
            with self.subTest(flags=flags):
                user = self.subscriber("paid")
                self.assertTrue(self.redis_cli(*flags, "CONSUME", user).startswith(f"ALLOWED user={user} plan=paid"))
                self.assertTrue(self.redis_cli(*flags, "consume", user, "2").startswith("ALLOWED "))
                listed = self.redis_cli(*flags, "HISTORY", user)
                self.assertIn(f"PERIOD user={user} period=2026-03 used=3 limit=800 tier=silent", listed)
                self.assertIn("BADARG user must be a UUID", self.redis_cli(*flags, "CONSUME", "nobody"))
                self.assertIn("ERR unknown command", self.redis_cli(*flags, "GET", "x"))
                self.assertEqual(self.redis_cli(*flags, "PING"), "PONG")
                several = self.redis_cli(*flags, input=f"SELECT 0\nCHECK {user}\nECHO done\n").split("\n")
                self.assertEqual([several[0], several[1].split(" ")[0], several[2]], ["OK", "ALLOWED", "done"])

    def test_redis_py_connects_consumes_pipelines_lists_and_raises_in_both_versions(self):
        for protocol in (2, 3):
            with self.subTest(protocol=protocol):
                user = self.subscriber("paid")
                client = redis.Redis(
                    port=self.service.port, protocol=protocol, decode_responses=True, client_name="tests", socket_timeout=TIMEOUT_SECONDS
                )
                self.assertTrue(client.ping())
                reply = client.execute_command("CONSUME", user)
                self.assertTrue(reply.startswith(f"ALLOWED user={user} plan=paid state=active tier=silent"), reply)
                pipeline = client.pipeline(transaction=False)
                for _ in range(50):
                    pipeline.execute_command("CONSUME", user, 2)
                used = [int(reply.split("used=")[1].split(" ")[0]) for reply in pipeline.execute()]
                self.assertEqual(used, list(range(3, 102, 2)))
                self.assertEqual(
                    client.execute_command("HISTORY", user),
                    [f"PERIOD user={user} period=2026-03 used=101 limit=800 tier=silent"],
                )
                self.assertEqual(client.execute_command("HISTORY", self.user()), [])
                for request, code in [
                    (("CONSUME", "nobody"), "BADARG"), (("CONSUME", user, 0), "BADARG"), (("SETPLAN", user, "gold"), "NOTFOUND"),
                    (("NOSUCH",), "unknown command"),
                ]:  # fmt: skip
                    with self.assertRaises(redis.ResponseError) as raised:
                        client.execute_command(*request)
                    self.assertIn(code, str(raised.exception))
                self.assertEqual(client.echo("ünï"), "ünï", "still in step after the errors")
                client.close()
                self.assertEqual(self.count(user), 101)

    def test_redis_py_uses_a_pool_of_connections_and_more_than_one_thread(self):
        from concurrent.futures import ThreadPoolExecutor

        user = self.subscriber("paid")
        client = redis.Redis(port=self.service.port, decode_responses=True, max_connections=8, socket_timeout=TIMEOUT_SECONDS)
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda _: client.execute_command("CONSUME", user), range(200)))
        used = sorted(int(reply.split("used=")[1].split(" ")[0]) for reply in replies)
        self.assertEqual(used, list(range(1, 201)))
        client.close()

    def test_hiredis_connects_consumes_pipelines_lists_and_sees_errors(self):
        user = self.subscriber("paid")
        with tempfile.TemporaryDirectory() as directory:
            source, program = directory + "/client.c", directory + "/client"
            with open(source, "w") as file:
                file.write(HIREDIS)
            if not os.path.exists("/usr/include/hiredis/hiredis.h"):
                self.skipTest("hiredis is not installed (libhiredis-dev)")
            subprocess.run(["cc", "-Wall", "-o", program, source, "-lhiredis"], check=True, capture_output=True)
            outcome = processes.completed([program, str(self.service.port), user])
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        lines = outcome.stdout.rstrip("\n").split("\n")
        status, error, array = "5 ", "6 ", "2 "
        self.assertTrue(lines[0].startswith(status + f"ALLOWED user={user} "), lines[0])
        for index, line in enumerate(lines[1:11]):
            self.assertTrue(line.startswith(status + "ALLOWED "), line)
            self.assertIn(f" used={3 + 2 * index} ", line)
        self.assertEqual(lines[11:13], [array, status + f"PERIOD user={user} period=2026-03 used=21 limit=800 tier=silent"])
        self.assertTrue(lines[13].startswith(error + "BADARG "), lines[13])
        self.assertEqual(lines[14:], [status + "PONG", "1 two words", "1 # Server"])

    def check_info(self, info):
        lanes = 2 * (citus.WORKERS if citus.is_asked_for() else 1)
        self.assertEqual(
            (info["role"], info["redis_mode"], info["database"], info["lanes"], info["lanes_connected"]),
            ("master", "standalone", "up", lanes, lanes),
        )
        self.assertLessEqual({"version", "uptime_s", "connections", "answers_allowed", "tier_silent", "errors"}, set(info))

    def test_redis_py_reads_info_and_echo_as_those_of_redis(self):
        for protocol in (2, 3):
            for decodes in (True, False):
                with self.subTest(protocol=protocol, decodes=decodes):
                    client = redis.Redis(
                        port=self.service.port, protocol=protocol, decode_responses=decodes, socket_timeout=TIMEOUT_SECONDS
                    )
                    self.check_info(client.info())
                    text = 'two words, "quotes" and ünï'
                    self.assertEqual(client.echo(text), text if decodes else text.encode())
                    client.close()

    def test_redis_py_reads_info_and_echo_with_asyncio(self):
        async def send_command():
            client = redis.asyncio.Redis(port=self.service.port, decode_responses=True, socket_timeout=TIMEOUT_SECONDS)
            try:
                return await client.info(), await client.echo("two words")
            finally:
                await client.aclose()

        info, echoed = asyncio.run(send_command())
        self.check_info(info)
        self.assertEqual(echoed, "two words")

    def test_redis_cli_prints_info_as_text(self):
        for flags in ([], ["-3"]):
            lines = self.redis_cli(*flags, "INFO").splitlines()
            self.assertEqual(lines[0], "# Server")
            self.assertIn("database:up", lines)
            self.assertEqual(self.redis_cli(*flags, "ECHO", "two words"), "two words")

    def test_inline_info_and_echo_are_lines(self):
        with self.service.connect() as connection:
            for request, first in (("INFO\n", r"\*\d+"), ("*1\r\n$4\r\nINFO\r\n", r"\$\d+"), ("ECHO x\n", r"\+x"),
                                   ("*2\r\n$4\r\necho\r\n$1\r\nx\r\n", r"\$1")):  # fmt: skip
                connection.send(request)
                head = connection.read_line()
                self.assertRegex(head, f"^{first}$")
                if head.startswith("*"):
                    for _ in range(int(head[1:])):
                        self.assertRegex(connection.read_line(), r"^\+[a-z0-9_.:]+=")
                elif head.startswith("$"):
                    # The text, and a line end outside its length.
                    length = int(head[1:]) + 2
                    while length > 0:
                        length -= len(connection.read_line().encode()) + 2
                    self.assertEqual(length, 0)
