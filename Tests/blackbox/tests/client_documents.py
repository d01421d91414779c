"""The programs of docs/clients.md, run exactly as they are printed or named there."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

from support import processes
from support.case import MID_MONTH, Case, called_by
from support.client_page import FOLDER, PAGE, USER, lines_without_program, missing, printed_programs
from support.default_port import DefaultPort
from support.nightly import nightly
from support.printed import ROOT, blocks
from support.waiting import wait_until

BANNER = "You have 99 conversations left this month\n"
LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1.\n"
CONSUMING = ("consume.", "predis.")
"""The file names of programs that send a CONSUME for a message."""


class PrintedProgramCase(Case):
    """Sets the page's user to a known count, and saves the programs in a directory of their own."""

    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        cls.port = DefaultPort()
        cls.addClassCleanup(cls.port.close)
        super().setUpClass()
        cls.port.target = cls.service.port
        cls.directory = processes.directory()
        cls.programs = {file: program for file, program in printed_programs().items() if program.is_run}
        for program in cls.programs.values():
            program.save(cls.directory)

    def prepare_user(self, used, plan="paid"):
        """Resets the user to a count, and the port to no faults."""
        self.send_command(f"FORGET {USER}")
        self.assertIn("+OK ", self.send_command(f"SETPLAN {USER} {plan}"))
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {USER}"))
        self.set_count(USER, used)
        self.port.behave()

    def run_printed(self, program, user=USER):
        return self.port.run(program.command.replace(USER, user), self.directory)

    def each_program(self, check):
        """The installed programs that send a CONSUME for a message."""
        for program in self.retrying_programs():
            with self.subTest(program=program.file):
                check(program)

    def retrying_programs(self):
        programs = [program for program in self.programs.values() if program.file.startswith(CONSUMING)]
        return [program for program in programs if not missing(program.packages)]

    def assert_printed(self, outcome, text):
        self.assertEqual((outcome.returncode, outcome.stdout), (0, text), outcome.stderr)


class ProgramsOnThePage(PrintedProgramCase):
    SHARED = True

    @called_by("each_program")
    def test_a_message_is_counted_and_sent_once_however_often_the_program_is_run(self, program):
        self.prepare_user(used=700)
        for line in ("send it\n", "sent before\n", "sent before\n"):
            self.assert_printed(self.run_printed(program), line + BANNER)
            self.assertEqual(self.count(USER), 701)

    @called_by("each_program")
    def test_at_the_limit_the_banner_is_printed_and_nothing_is_counted(self, program):
        self.prepare_user(used=800)
        self.assert_printed(self.run_printed(program), LIMIT)
        self.assertEqual(self.count(USER), 800)

    def test_every_program_is_run_or_listed_as_not_run(self):
        files = set(self.programs)
        self.assertLessEqual({f"consume.{ending}" for ending in ("c", "pl", "lua", "php", "rb", "sh")}, files, "languages")
        self.assertEqual({file for file in files if not file.startswith(CONSUMING)}, {"watch.py"})
        self.assertEqual(set(printed_programs()) - files, {"consume.go", "Consume.java", "Consume.cs"})
        self.assertEqual(set(os.listdir(os.path.join(ROOT, FOLDER))), {*printed_programs(), "README.md"} - {"watch.py"})
        self.assertEqual([block.language for block in blocks(PAGE)], ["sh", "python", "sh", "indented"], "a block that is not run")

    def test_the_listed_packages_are_installed(self):
        names = {name for program in self.programs.values() for name in program.packages}
        self.assertLessEqual({"libredis-perl", "lua-redis", "php-redis", "ruby-redis", "libhiredis-dev"}, names)
        absent = missing(sorted(names))
        if absent:
            self.skipTest(f"programs were left out: {' '.join(absent)} is missing; script/bootstrap --test installs it on Debian")


@nightly("`ProgramsOnThePage` sends the first message and those at the limit with every program")
class ProgramsInDepth(PrintedProgramCase):
    SHARED = True

    @called_by("each_program")
    def test_without_a_banner_the_message_is_sent_and_nothing_is_shown(self, program):
        self.prepare_user(used=5)
        self.assert_printed(self.run_printed(program), "send it\n\n")

    @called_by("each_program")
    def test_a_message_whose_answers_were_lost_twice_is_counted_once(self, program):
        self.prepare_user(used=700)
        self.port.lose_answers(2)
        self.assert_printed(self.run_printed(program), "send it\n" + BANNER)
        self.assertEqual(self.port.fired, 2, "the answers were lost")
        self.assertEqual(self.count(USER), 701)

    @called_by("each_program")
    def test_temporary_errors_are_retried_with_the_same_key(self, program):
        for errors in (
            ["-UNKNOWN the outcome could not be learned in time", "-UNAVAILABLE retry_ms=500 the database is away"],
            ["-OVERLOADED retry_ms=20 more waits than can be served", "-DRAINING shutting down"],
        ):
            self.prepare_user(used=700)
            self.port.answer_instead(*errors)
            self.assert_printed(self.run_printed(program), "send it\n" + BANNER)
            self.assertEqual(self.port.fired, 2)
            self.assertEqual(self.count(USER), 701)
            self.assertEqual(self.port.sent.count(b"key=message-1"), 3)

    @called_by("each_program")
    def test_errors_after_which_nothing_was_counted_do_not_send_a_message_again(self, program):
        self.prepare_user(used=700)
        self.assert_printed(self.run_printed(program), "send it\n" + BANNER)
        self.port.answer_instead("-UNAVAILABLE retry_ms=500 the database is away", "-OVERLOADED retry_ms=20 too many")
        self.assert_printed(self.run_printed(program), "sent before\n" + BANNER)
        self.assertEqual(self.port.fired, 2)
        self.assertEqual(self.count(USER), 701)

    @called_by("each_program")
    def test_a_released_message_is_not_sent_again_with_its_key(self, program):
        self.prepare_user(used=700)
        self.assert_printed(self.run_printed(program), "send it\n" + BANNER)
        self.assertIn(" released=1", self.send_command(f"RELEASE {USER} key=message-1"))
        outcome = self.run_printed(program)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertEqual(outcome.stdout, "")
        self.assertIn("CONFLICT key was released; a new attempt needs a new key", outcome.stderr)
        self.assertEqual(self.count(USER), 700)

    @called_by("each_program")
    def test_a_permanent_error_is_printed_and_not_retried(self, program):
        self.prepare_user(used=700)
        outcome = self.run_printed(program, user="nobody")
        self.assertNotEqual(outcome.returncode, 0)
        self.assertEqual(outcome.stdout, "")
        self.assertIn("BADARG user must be a UUID", outcome.stderr)
        self.assertEqual(self.port.sent.count(b"key=message-1"), 1)
        self.assertEqual(self.count(USER), 700)

    @called_by("each_program")
    def test_quoted_values_are_decoded(self, program):
        self.port.behave()
        self.port.answer_instead(
            f'+ALLOWED user={USER} plan=paid label="a \\"b\\" banner=no" notice="" '
            'banner="She said \\"hi\\" \\\\o/ tier=x" new=1'
        )
        self.assert_printed(self.run_printed(program), 'send it\nShe said "hi" \\o/ tier=x\n')

    def test_a_silent_service_is_given_up_after_three_attempts(self):
        programs = self.retrying_programs()
        self.prepare_user(used=700)
        self.port.be_silent()
        with ThreadPoolExecutor(len(programs)) as pool:
            outcomes = list(pool.map(self.run_printed, programs))
        for program, outcome in zip(programs, outcomes):
            with self.subTest(program=program.file):
                self.assertNotEqual(outcome.returncode, 0)
                self.assertEqual(outcome.stdout, "")
                self.assertIn("failed: ", outcome.stderr)
        self.assertEqual(self.port.sent.count(b"key=message-1"), 3 * len(programs))
        self.assertEqual(self.count(USER), 700)

    def test_lines_that_need_no_program_are_answered(self):
        commands = lines_without_program()
        self.assertEqual(len(commands), 1)
        for command in commands:
            self.prepare_user(used=700)
            outcome = self.port.run(command, self.directory)
            self.assert_printed(outcome, outcome.stdout)
            self.assertTrue(outcome.stdout.startswith(f"+ALLOWED user={USER} "), outcome)
            self.assertEqual(self.count(USER), 701)


class PythonOnThePage(PrintedProgramCase):
    SHARED = True

    def test_changes_are_printed_also_those_during_a_lost_connection(self):
        self.prepare_user(used=10)
        output = self.directory + "/changes"
        with open(output, "w") as file:
            watching = self.port.start(self.programs["watch.py"].command.strip(), self.directory, stdout=file, stderr=subprocess.DEVNULL)

        def has_printed(used):
            with open(output) as file:
                return any(line.startswith(f"user={USER} ") and f" used={used} " in line for line in file)

        wait_until(lambda: has_printed(10), "where the user stands")
        self.send_command(f"CONSUME {USER}")
        wait_until(lambda: has_printed(11), "a message")
        self.psql.run(f"update message_usage set message_count = 20 where user_id = '{USER}'")
        wait_until(lambda: has_printed(20), "a change through psql")
        self.port.cut()
        self.send_command(f"CONSUME {USER}")
        wait_until(lambda: has_printed(21), "messages during the lost connection")
        self.send_command(f"CONSUME {USER}")
        wait_until(lambda: has_printed(22), "a message after that")
        self.assertEqual(processes.stop(watching), -signal.SIGTERM)
