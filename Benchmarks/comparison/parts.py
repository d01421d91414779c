"""Messages with a model or a member that has a limit of its own, beside messages with neither."""

from __future__ import annotations

from support.users import numbered_user

from .bench import Bench
from .titles import USERS


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
    )

    def measure() -> None:
        for name, options in (("without_parts", ""), ("with_model", " model=large"), ("with_member", f" member={member}")):
            bench.by_headroom_bench(f"headroom_{name}", headroom, USERS, command=f"CONSUME {{user}}{options}")

    bench.rounds(measure)
    sql("delete from headroom.plan_limits", "truncate headroom.usage_parts")
