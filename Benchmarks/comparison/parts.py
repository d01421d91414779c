"""Messages with a model or a member that has a limit of its own, and of users with a balance, beside messages with neither."""

from __future__ import annotations

from support.users import numbered_user

from .bench import Bench
from .titles import USERS

# Old versions of rows leave room for new ones, which makes counting faster for a while.
VACUUM = ("reset role", "vacuum (full, analyze) public.message_usage")
# Each user's allowance is used up, so that all messages are taken from a balance.
GIVE = (
    "set role headroom_owner",
    "insert into headroom.grants (bucket, user_id, key, messages, granted_at, actor, expires_at) "
    "select bucket, user_id, 'pack', 1000000, now(), 'bench', 'infinity' from public.message_usage",
    'update public.message_usage set "limit" = message_count',
    "update headroom.subscribers set has_balances = true",
    "select count(headroom.attach_balances(user_id, billing_period, now())) from public.message_usage",
    *VACUUM,
)
TAKE_BACK = (
    "set role headroom_owner",
    "select count(headroom.detach_balances(user_id, now())) from public.message_usage",
    "delete from headroom.grants",
    "update headroom.subscribers set has_balances = false",
    'update public.message_usage set "limit" = plan_limit, granted = null',
    *VACUUM,
)


def stage(bench: Bench) -> None:
    headroom = bench.headroom
    member = numbered_user(USERS)

    def sql(*statements: str) -> None:
        bench.postgres.sql(*statements, database=headroom.database)

    sql(
        "insert into headroom.plan_limits (plan, kind, name, allowance) select plan, kind, name, 1000000000 "
        "from headroom.plans cross join (values ('model', 'large'), ('member', '*')) as limits (kind, name)",
        # Each user has had a message with the model and of the member, as after a period's first minutes.
        "insert into headroom.usage_parts (bucket, user_id, billing_period, kind, name, generation, updated_at) "
        "select bucket, user_id, billing_period, kind, name, 0, now() from public.message_usage "
        f"cross join (values ('model', 'large'), ('member', '{member}')) as parts (kind, name)",
        "vacuum analyze headroom.usage_parts",
        *VACUUM,
    )

    def measure() -> None:
        sql(*GIVE)
        bench.by_headroom_bench("headroom_with_balance", headroom, USERS, command="CONSUME {user}")
        sql(*TAKE_BACK)
        for name, options in (("without_parts", ""), ("with_model", " model=large"), ("with_member", f" member={member}")):
            bench.by_headroom_bench(f"headroom_{name}", headroom, USERS, command=f"CONSUME {{user}}{options}")

    bench.rounds(measure)
    sql("delete from headroom.plan_limits", "truncate headroom.usage_parts")
