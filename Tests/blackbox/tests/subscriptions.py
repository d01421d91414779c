"""SUBSCRIBE: changes of a user's usage, plan or state from any source reach subscribers."""

import os
import subprocess
import tempfile

import redis
from support.case import MID_MONTH, Case
from support.processes import resident_bytes
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer, Closed

HIREDIS = r"""
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints each message's elements, a line each, until there were as many messages as asked for. */
int main(int argc, char **argv) {
    redisContext *context = redisConnect("127.0.0.1", atoi(argv[1]));
    if (argc != 4 || !context || context->err) return 1;
    redisReply *reply = redisCommand(context, "SUBSCRIBE usage:%s", argv[2]);
    for (int messages = atoi(argv[3]);; messages--) {
        if (!reply || reply->type != REDIS_REPLY_ARRAY) return 2;
        for (size_t i = 0; i < reply->elements; i++) {
            redisReply *element = reply->element[i];
            if (element->type == REDIS_REPLY_INTEGER) printf("%lld\n", element->integer);
            else printf("%s\n", element->str);
        }
        fflush(stdout);
        if (messages == 0 || redisGetReply(context, (void **)&reply)) break;
    }
    return 0;
}
"""


class Subscriber:
    """A subscribed connection, read frame by frame."""

    def __init__(self, service, *users):
        self.line = service.connect()
        for start in range(0, len(users), 15):
            some = users[start : start + 15]
            self.line.send("SUBSCRIBE " + " ".join(f"usage:{user}" for user in some) + "\n")
            for number, user in enumerate(some, start + 1):
                assert self.frame() == ["subscribe", f"usage:{user}", number]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()

    def element(self):
        header = self.line.read_line()
        if header[0] == ":":
            return int(header[1:])
        if header == "$-1":
            return None
        assert header[0] == "$", header
        text = self.line.read_line()
        assert len(text.encode()) == int(header[1:]), (header, text)
        return text

    def frame(self):
        header = self.line.read_line()
        if header[0] in "+-":
            return header
        assert header[0] in "*>", header
        return [self.element() for _ in range(int(header[1:]))]

    def message(self):
        """The fields of the next message."""
        kind, channel, payload = self.frame()
        answer = Answer("+OK " + payload)
        assert (kind, channel) == ("message", "usage:" + answer["user"])
        return answer

    def message_where(self, **fields):
        """The next message with these fields."""
        while True:
            answer = self.message()
            if all(answer.get(name) == str(value) for name, value in fields.items()):
                return answer

    def send_command(self, request):
        self.line.send(request + "\n")
        return self.frame()


class Subscriptions(Case):
    CLOCK = MID_MONTH

    def test_a_message_has_the_fields_of_usage(self):
        user = self.subscriber("paid")
        with Subscriber(self.service, user) as subscriber:
            self.send_command(f"CONSUME {user} 5")
            published = subscriber.message_where(used=5)
            self.assertEqual(published.text, self.send_command(f"USAGE {user}"))

    def test_changes_through_another_instance_and_from_psql_are_published(self):
        other = self.serve()
        user = self.subscriber("paid", used=10)
        sql = self.psql.run
        with Subscriber(self.service, user) as subscriber:
            other.send_command(f"CONSUME {user} 7")
            subscriber.message_where(used=17)
            sql(f"update message_usage set message_count = 640 where user_id = '{user}'")
            subscriber.message_where(used=640, tier="gentle", display="compact")
            sql(f"select * from reset_usage('{user}')")
            subscriber.message_where(used=0, tier="silent")
            sql(f"select * from increment_and_check_usage('{user}', 3)")
            subscriber.message_where(used=3)
            sql(f"select * from set_plan('{user}', 'pro')")
            subscriber.message_where(plan="pro", limit="unlimited", used=3)
            sql(f"select * from set_plan('{user}', 'paid', 'grace_period')")
            subscriber.message_where(plan="paid", state="grace_period")
            sql(f"delete from message_usage where user_id = '{user}'")
            subscriber.message_where(used=0)
            other.send_command(f"SETPLAN {user} paid state=revoked")
            subscriber.message_where(state="revoked", remaining=0)

    def test_no_change_after_the_confirmation_is_missed(self):
        for _ in range(30):
            user = self.subscriber("paid")
            with Subscriber(self.service, user) as subscriber:
                self.send_command(f"CONSUME {user}")
                subscriber.message_where(used=1)

    def test_redis_py_subscribes_listens_and_unsubscribes_in_both_versions(self):
        for protocol in (2, 3):
            with self.subTest(protocol=protocol):
                user, other = self.subscriber("paid"), self.subscriber("paid")
                client = redis.Redis(port=self.service.port, protocol=protocol, decode_responses=True, socket_timeout=TIMEOUT_SECONDS)
                listener = client.pubsub()
                listener.subscribe(f"usage:{user}", f"usage:{other}")

                def next_of(kind, listener=listener):
                    return wait_until(lambda: next((m for m in [listener.get_message(timeout=1)] if m and m["type"] == kind), None), kind)

                self.assertEqual(next_of("subscribe")["channel"], f"usage:{user}")
                self.assertEqual(next_of("subscribe")["data"], 2)
                client.execute_command("CONSUME", user, 4)
                message = next_of("message")
                self.assertEqual(message["channel"], f"usage:{user}")
                self.assertEqual(Answer("+OK " + message["data"]).used, 4)
                if protocol == 2:  # in RESP3, redis-py does not recognise its PONG among messages
                    listener.ping()
                    self.assertEqual(next_of("pong")["data"], "")
                listener.unsubscribe(f"usage:{user}")
                self.assertEqual(next_of("unsubscribe")["data"], 1)
                client.execute_command("CONSUME", user)
                client.execute_command("CONSUME", other)
                self.assertEqual(next_of("message")["channel"], f"usage:{other}")
                listener.unsubscribe()
                self.assertEqual(next_of("unsubscribe")["data"], 0)
                listener.close()
                client.close()

    def test_redis_py_calls_a_handler_in_a_thread_of_its_own(self):
        user = self.subscriber("paid")
        client = redis.Redis(port=self.service.port, decode_responses=True)
        published = []
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.subscribe(**{f"usage:{user.upper()}": published.append})
        thread = listener.run_in_thread(sleep_time=0.05)
        try:
            wait_until(lambda: client.execute_command("CONSUME", user) and published, "the handler is called")
            used = self.count(user)
            wait_until(lambda: Answer("+OK " + published[-1]["data"]).used == used, "and with the last change")
            self.assertEqual(published[-1]["channel"], f"usage:{user.upper()}")
        finally:
            thread.stop()
            thread.join()
            client.close()

    def test_hiredis_gets_confirmation_and_messages(self):
        if not os.path.exists("/usr/include/hiredis/hiredis.h"):
            self.skipTest("hiredis is not installed (libhiredis-dev)")
        user = self.subscriber("paid")
        with tempfile.TemporaryDirectory() as directory:
            source, program = directory + "/client.c", directory + "/client"
            with open(source, "w") as file:
                file.write(HIREDIS)
            subprocess.run(["cc", "-Wall", "-o", program, source, "-lhiredis"], check=True, capture_output=True)
            client = subprocess.Popen([program, str(self.service.port), user, "1"], stdout=subprocess.PIPE, text=True)
            lines = [client.stdout.readline().strip() for _ in range(3)]
            self.assertEqual(lines, ["subscribe", f"usage:{user}", "1"])
            self.send_command(f"CONSUME {user}")
            kind, channel, payload = (client.stdout.readline().strip() for _ in range(3))
            self.assertEqual((kind, channel), ("message", f"usage:{user}"))
            self.assertTrue(payload.startswith(f"user={user} plan=paid state=active"), payload)
            self.assertEqual(client.wait(TIMEOUT_SECONDS), 0)
            client.stdout.close()


class ManySubscriptions(Case):
    FLAGS = ("--subscriptions-maximum", "2000", "--output-timeout-ms", "300000")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.users = [row[0] for row in cls.psql.run("select gen_random_uuid() from generate_series(1, 2000)")]
        listed = ",".join(f"'{user}'" for user in cls.users)
        cls.psql.run(f"select count(set_plan(id::uuid, 'paid')) from unnest(array[{listed}]) as id")

    def change_all(self, count):
        self.psql.run(
            f"insert into message_usage (bucket, user_id, billing_period, message_count) select bucket, user_id, '2020-01', {count}"
            " from headroom.subscribers on conflict (user_id, billing_period) do update set message_count = excluded.message_count"
        )
        with self.service.connect() as connection:
            connection.send("".join(f"CONSUME {user}\n" for user in self.users))
            return {user: Answer(reply).used for user, reply in zip(self.users, connection.read_lines(len(self.users)))}

    def test_two_thousand_on_one_connection_all_get_changes_and_one_more_is_refused(self):
        with Subscriber(self.service, *self.users) as subscriber:
            refused = subscriber.send_command(f"SUBSCRIBE usage:{self.user()}")
            self.assertTrue(refused.startswith("-BADARG too many subscriptions"), refused)
            final = self.change_all(1)
            seen = {}
            while seen != final:
                answer = subscriber.message()
                seen[answer["user"]] = answer.used
            subscriber.line.send("UNSUBSCRIBE\n")
            self.assertEqual([subscriber.frame()[2] for _ in range(2000)], list(range(1999, -1, -1)))

    def test_a_subscriber_that_does_not_read_costs_no_memory_and_gets_the_final_state(self):
        with Subscriber(self.service, *self.users) as subscriber:
            final = self.change_all(1)
            before = resident_bytes(self.service.process.pid)
            # 40,000 changes of some 600 bytes each, to a peer that reads none of them: 24 MB if all were kept.
            for count in range(2, 22):
                final = self.change_all(count)
            grown = resident_bytes(self.service.process.pid) - before
            self.assertLess(grown, 12_000 * 1_024)
            seen, messages = {}, 0
            while seen != final:
                answer = subscriber.message()
                seen[answer["user"]] = answer.used
                messages += 1
            self.assertLess(messages, 30_000, "the newest of each user, not every change")

    def test_a_silent_subscriber_is_not_idle_but_other_silent_connections_are(self):
        service = self.serve("--idle-timeout-ms", "1500")
        user = self.users[0]
        with Subscriber(service, user) as subscriber:
            with service.connect() as connection:
                self.assertEqual(connection.send_command("PING"), "+PONG")
                self.assertEqual(connection.read_to_end(), b"", "closed after a while of silence")
            self.send_command(f"CONSUME {user}")
            subscriber.message_where(user=user)

    def test_a_drain_closes_subscribers(self):
        service = self.serve()
        with Subscriber(service, *self.users[:10]) as subscriber:
            service.signal(15)
            self.assertEqual(service.wait(), 0)
            with self.assertRaises(Closed):
                while True:
                    subscriber.frame()


class SubscriptionsThroughOutages(Case):
    OWN_CLUSTER = True
    # The first requests while the database is away wait for this long.
    FLAGS = ("--request-timeout-ms", "8000")

    def test_changes_during_an_outage_are_published_afterwards(self):
        user = self.subscriber("paid", used=1)
        other = self.user()
        with Subscriber(self.service, user) as subscriber:
            self.cluster.stop_immediately()
            with self.service.connect() as connection:
                refused = connection.send_command(f"SUBSCRIBE usage:{other}")
            self.assertTrue(refused.startswith("-UNAVAILABLE retry_ms="), refused)
            self.cluster.start()
            self.psql.close()
            type(self).psql = self.cluster.session(self.database)
            self.psql.run(f"update message_usage set message_count = 77 where user_id = '{user}'")
            subscriber.message_where(used=77)
            with Subscriber(self.service, other):
                pass

    def test_a_lost_polling_session_is_reopened(self):
        user = self.subscriber("paid", used=1)
        with Subscriber(self.service, user) as subscriber:
            for count in range(2, 12):
                self.psql.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'headroom changes'")
                self.set_count(user, count)
                subscriber.message_where(used=count)
