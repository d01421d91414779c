"""Fills a database with a year of a chat product's usage."""

from . import citus
from .stores import revenuecat
from .webhooks import post_event

ADA = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"


def seed(case, users=None, months=12):
    """Users on four plans with different usage in the twelve months up to the current one, daily activity, and the history of ADA.
    The numbers are the same in each run. Fewer users by default where Citus distributes them: there, a user without a subscription
    takes a report ten times as long."""
    users = users or (1_000 if citus.is_asked_for() else 4_000)
    case.psql.run("select setseed(0.4711)")
    # Without audit rows: what Headroom itself changes is not a change by hand.
    case.psql.run("set role headroom_owner")
    case.psql.run(
        f"""
        insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan, plan_limit, state, updated_at)
        select
            headroom.bucket_of(md5(users.number::text)::uuid), md5(users.number::text)::uuid,
            to_char(date_trunc('month', headroom.now() at time zone 'UTC') - make_interval(months => months.ago), 'YYYY-MM'),
            case
                when users.number % 25 = 0 then users.allowance
                when users.number % 9 = 0 then (users.allowance * (0.80 + 0.19 * random()))::integer
                else (users.allowance * 0.8 * random() ^ 2)::integer
            end,
            nullif(users.allowance, 900), case users.allowance when 900 then 'pro' else 'paid' end,
            nullif(users.allowance, 900), 'active', headroom.now()
        from (
            select number, case when number % 50 = 1 then 900 else 800 end as allowance
            from generate_series(1, {users}) as number
        ) as users
        cross join generate_series(0, {months - 1}) as months (ago)
        where users.number <= {users} * (1 - months.ago / {months + 4}.0)
        """
    )
    case.psql.run(
        f"""
        insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan, plan_limit, state, updated_at)
        select
            headroom.bucket_of(md5('trial' || number)::uuid), md5('trial' || number)::uuid, 'trial',
            least(100, (120 * random())::integer), 100, 'trial', 100, 'trial', headroom.now()
        from generate_series(1, {users // 8}) as number
        """
    )
    case.psql.run(
        """
        insert into headroom.daily_activity (day, messages, blocked)
        select (headroom.now() at time zone 'UTC')::date - ago,
            (41000 - ago * 320 + 9000 * sin(ago * 0.9) + 4000 * random())::bigint / case ago when 0 then 3 else 1 end,
            (300 + 200 * random())::bigint
        from generate_series(0, 33) as ago
        on conflict (day) do update set messages = excluded.messages, blocked = excluded.blocked
        """
    )
    case.psql.run("reset role")
    seed_user_history(case, ADA)
    case.psql.run("analyze")


def seed_user_history(case, user):
    """A trial, a purchase, a renewal, a revoked cancellation, a grant after an outage. The case's service accepts RevenueCat's
    events."""
    days = lambda ago: case.psql.value(f"select headroom.instant_text(headroom.now() - interval '{ago} days')")
    case.psql.run("set role headroom_owner")
    case.psql.run(
        f"""insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan, plan_limit, state, updated_at)
        values (headroom.bucket_of('{user}'), '{user}', 'trial', 64, 100, 'trial', 100, 'trial', headroom.now() - interval '100 days')"""
    )
    case.psql.run("reset role")
    case.psql.run("select headroom.map_product('revenuecat', 'premium_monthly', 'paid')")
    for kind, ago, more in [
        ("INITIAL_PURCHASE", 97, {"expiration_at_ms": days(67)}),
        ("RENEWAL", 67, {"expiration_at_ms": days(37)}),
        ("CANCELLATION", 50, {"cancel_reason": "UNSUBSCRIBE"}),
        ("UNCANCELLATION", 49, {}),
        ("RENEWAL", 37, {"expiration_at_ms": days(7)}),
        ("BILLING_ISSUE", 7, {"grace_period_expiration_at_ms": days(-9)}),
    ]:
        event = revenuecat(kind, days(ago), user, "2000000123456789", product_id="premium_monthly", **more)
        outcome = post_event(case.service, event)["outcome"]
        assert outcome == "applied", f"{kind}: {outcome}"
    case.psql.run("set headroom.actor = 'ann'")
    case.service.send_command(f"CONSUME {user} 801")
    case.service.send_command(f"CONSUME {user} 772")
    case.psql.run(f"select grant_messages('{user}', 50, 'outage of the 12th, ticket 4711')")
    case.psql.run("reset headroom.actor")
    case.psql.run("set role headroom_owner")
    for number, ago in enumerate([1, 2, 3]):
        case.psql.run(
            f"""
            insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan, plan_limit, state, updated_at)
            values (
                headroom.bucket_of('{user}'), '{user}',
                to_char(date_trunc('month', headroom.now() at time zone 'UTC') - interval '{ago} months', 'YYYY-MM'),
                {[800, 512, 388][number]}, 800, 'paid', 800, 'active', headroom.now()
            ) on conflict do nothing
            """
        )
    case.psql.run("reset role")
