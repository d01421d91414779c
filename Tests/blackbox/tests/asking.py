"""`headroom ask`: requests on the command line or on standard input, their replies, and its exit status."""

import unittest

from support import processes, settings
from support.case import Case
from support.service import environment
from support.tokens import token
from support.waiting import wait_until


def ask(*arguments, target=None, text="", **variables):
    flags = ["--target", target] if target else []
    return processes.completed([settings.binary, "ask", *flags, *arguments], input=text, cwd="/", env=environment(**variables))


class Asking(Case):
    SHARED = True

    def ask(self, *arguments, **options):
        return ask(*arguments, target=f"127.0.0.1:{self.service.port}", **options)

    def test_replies_are_printed_as_they_are_sent_in_order(self):
        user = self.user()
        ran = self.ask(f"CONSUME {user}", f"CHECK {user} 200", "HISTORY " + user, "HELP PING")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), "a refusal is an answer")
        lines = ran.stdout.splitlines()
        self.assertRegex(lines[0], rf"^\+ALLOWED user={user} .* used=1 ")
        self.assertRegex(lines[1], rf"^\+BLOCKED user={user} .* reason=")
        self.assertEqual(lines[2], "*1")
        self.assertRegex(lines[3], rf"^\+PERIOD user={user} ")
        self.assertEqual(lines[4], "*1")
        self.assertRegex(lines[5], r"^\+PING")

    def test_each_line_of_standard_input_is_a_request(self):
        user = self.user()
        ran = self.ask(text=f"CONSUME {user}\r\n\nECHO über\nCONSUME {user}")
        lines = ran.stdout.splitlines()
        self.assertEqual((ran.returncode, ran.stderr, len(lines)), (0, "", 3))
        self.assertEqual(lines[1], "+über")
        self.assertIn(" used=2 ", lines[2])
        self.assertEqual(self.count(user), 2)

    def test_an_error_is_printed_like_an_answer_and_the_status_is_1(self):
        user = self.user()
        ran = self.ask("CONSUME nobody", "NOSUCH", f"CONSUME {user}")
        self.assertEqual((ran.returncode, ran.stderr), (1, ""))
        first, second, third = ran.stdout.splitlines()
        self.assertRegex(first, "^-BADARG ")
        self.assertRegex(second, "^-ERR unknown command")
        self.assertRegex(third, r"^\+ALLOWED ", "the requests after an error are sent, too")

    def test_nothing_is_sent_if_a_request_has_no_reply_of_lines(self):
        user = self.user()
        for requests, words in (
            ([f"SUBSCRIBE usage:{user}"], "follow changes with redis-cli SUBSCRIBE"), (["HELLO 3"], "HELLO is for client libraries"),
            (["*1\r\n$4\r\nPING\r\n"], "a request is a line of words"), ([f"PING\nCONSUME {user}"], "a request is one line"),
            (["CONSUME", user], f"a request is one argument: headroom ask 'CONSUME {user}'"),
        ):  # fmt: skip
            with self.subTest(requests=requests):
                ran = self.ask(f"CONSUME {user}", *requests) if " " in requests[0] else self.ask(*requests)
                self.assertEqual((ran.returncode, ran.stdout), (64, ""))
                self.assertIn(words, ran.stderr)
        self.assertEqual(self.count(user), 0)
        ran = self.ask(text=f"PING\nSUBSCRIBE usage:{user}\n")
        self.assertEqual((ran.returncode, ran.stdout), (64, "+PONG\n"))
        ran = self.ask()
        self.assertEqual((ran.returncode, ran.stdout), (64, ""))
        self.assertIn("there is no request", ran.stderr)

    def test_requests_after_quit_get_no_answer(self):
        ran = self.ask("PING", "QUIT", "PING")
        self.assertEqual((ran.returncode, ran.stdout), (69, "+PONG\n+OK\n"))
        self.assertIn("the service closed the connection", ran.stderr)


class WithTokens(Case):
    FLAGS = ("--authentication", "required")

    def test_a_missing_token_is_explained_and_one_in_the_environment_is_used(self):
        target = f"127.0.0.1:{self.service.port}"
        ran = ask("PING", target=target)
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stdout, "^-NOAUTH ")
        self.assertRegex(ran.stderr, r"\AError: set HEADROOM_TOKEN, or give --token-file \(headroom token create\)\n\Z")
        _, text = token(self, "asking", "chat")
        path = processes.directory() + "/token"
        with open(path, "w") as file:
            file.write(text + "\n")

        def answers(*flags, **variables):
            ran = ask(*flags, f"CONSUME {self.user()}", target=target, **variables)
            return ran.returncode == 0 and ran.stdout.startswith("+ALLOWED ")

        wait_until(lambda: answers(HEADROOM_TOKEN=text), "the service has read the new token")
        self.assertTrue(answers("--token-file", path))


class WithoutAService(unittest.TestCase):
    def test_says_what_to_do(self):
        target = f"127.0.0.1:{processes.free_port()}"
        for ran in (ask("PING", target=target), ask("PING", HEADROOM_TARGET=target)):
            self.assertEqual((ran.returncode, ran.stdout), (69, ""))
            for words in (target, "nothing listens there", "headroom serve", "--target", "HEADROOM_TARGET"):
                self.assertIn(words, ran.stderr)
