"""Planted bugs, which the checker must catch.

Each replaces text in the functions of one run's database; the service and its migrations contain none of it. A plant that does
not find the text to replace fails its run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plant:
    name: str
    description: str
    sql: str
    # The fault that reveals it, and the invariants of which one must be reported.
    fault: str
    caught_by: frozenset[str]
    seconds: float = 4


def rewritten(function: str, *changes: tuple[str, str]) -> str:
    """Replaces text in the source of a function."""
    steps = "\n".join(
        f"if position({quoted(old)} in v_source) = 0 then raise exception 'nothing to plant in {function}'; end if;"
        f" v_source := replace(v_source, {quoted(old)}, {quoted(new)});"
        for old, new in changes
    )
    return f"""do $plant$ declare v_source text := pg_get_functiondef('{function}'::regproc); begin
        {steps} execute v_source; end $plant$;"""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


PLANTS = [
    Plant(
        name="reply-before-commit",
        description="answers leave before the commit is on disk",
        sql="""create or replace function headroom.now() returns timestamptz language sql stable
            return (select case when set_config('synchronous_commit', 'off', true) is not null then pg_catalog.now() end);""",
        fault="restart-immediately",
        caught_by=frozenset({"I5"}),
    ),
    Plant(
        name="key-not-recorded",
        description="one key in twenty is not remembered",
        sql="""create function headroom.forgetful() returns trigger language plpgsql as
            'begin if random() < 0.05 then return null; end if; return new; end';
        create trigger forgetful before insert on headroom.message_keys for each row execute function headroom.forgetful();""",
        fault="none",
        caught_by=frozenset({"I4", "I5"}),
    ),
    Plant(
        name="less-or-equal",
        description="one message more than the limit is granted",
        # In both: most batches have a message with a key.
        sql="".join(
            rewritten(f"headroom.{function}", ('usage."limit" end, 2147483647', 'usage."limit" + 1 end, 2147483647'))
            for function in ("count_batch", "count_keyed_batch")
        ),
        fault="none",
        caught_by=frozenset({"I1"}),
    ),
    Plant(
        name="unsorted-locks",
        description="each lane locks its users in an order of its own",
        sql=rewritten(
            "headroom.lock_subscribers_of",
            (
                "return array(",
                "perform from public.message_usage as usage where usage.user_id = any (p_users)"
                " order by md5(usage.user_id::text || pg_backend_pid()) for update; return array(",
            ),
        ),
        fault="none",
        caught_by=frozenset({"I13"}),
        seconds=8,
    ),
    Plant(
        name="lost-update",
        description="the slow path now and then reads a count from before the newest message",
        sql=rewritten(
            "headroom.lock_and_read_users",
            ("derived, usage.message_count,", "derived, greatest(usage.message_count - (random() < 0.05)::integer, 0),"),
        ),
        fault="none",
        caught_by=frozenset({"I2", "I3", "I5", "I6"}),
    ),
    Plant(
        name="one-of-two-allowances",
        description="one message in twenty counts for the account and the model, and not for the member",
        sql=rewritten(
            "headroom.count_parts",
            (
                "set used = counted.used + part.messages",
                "set used = counted.used + case when part.kind = 'member' and random() < 0.05 then 0 else part.messages end",
            ),
        ),
        fault="none",
        caught_by=frozenset({"I19"}),
    ),
    Plant(
        name="balance-taken-twice",
        description="one time in five, a message that is taken from a balance stays in it",
        sql="".join(
            rewritten(f"headroom.{function}", (f"taken + {messages}", f"taken + {messages} * (random() >= 0.2)::integer"))
            for function, messages in (("charge_balance", "p_messages"), ("settle_drawn", "v_balance.drawn"))
        ),
        fault="none",
        caught_by=frozenset({"I20"}),
    ),
    Plant(
        name="release-across-a-reset",
        description="a release takes its messages off the count that a reset began anew",
        sql=rewritten("public.reset_usage", (" generation = v_generation,", "")),
        fault="none",
        caught_by=frozenset({"I9"}),
        seconds=6,
    ),
]
