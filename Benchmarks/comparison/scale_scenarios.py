"""Scenarios with users that the service does not know yet, and over numbers of connections, users and rows."""

from .scenario import Goal, Ratio, Scenario
from .titles import (
    CURVE_CONNECTIONS,
    CURVE_ROWS,
    CURVE_USERS,
    PERIODS,
    ROTATION_USERS,
    USERS,
    load_name,
)

SCALE_SCENARIOS = (
    Scenario(
        name="cold",
        stage="restart",
        title="just after a restart",
        measurements=tuple(
            f"headroom_{kind}_{period}_{load_name(pipeline)}"
            for period in PERIODS
            for pipeline in (1, 16)
            for kind in ("cold", "warm")
        ),
        ratios=tuple(
            (
                Ratio(
                    name=f"cold_{period}_{load_name(pipeline)}",
                    title=f"just after a restart / all users cached, 64 × {pipeline}, {words}",
                    numerator=f"headroom_cold_{period}_{load_name(pipeline)}",
                    denominator=f"headroom_warm_{period}_{load_name(pipeline)}",
                )
                for period, words in PERIODS.items()
                for pipeline in (1, 16)
            )
        ),
        goals=tuple(
            (
                Goal(
                    name=f"cold_{period}_{load_name(pipeline)}",
                    title=f"rate, just after a restart / all users cached, 64 × {pipeline}, {words}",
                    of=f"cold_{period}_{load_name(pipeline)}",
                    at_least=bound,
                )
                for period, words in PERIODS.items()
                for pipeline, bound in ((1, 0.65), (16, 0.5))
            )
        ),
    ),
    Scenario(
        name="new_users",
        stage="restart",
        title="each user new",
        measurements=("headroom_warm_own_64x16", "headroom_new_users", "headroom_new_users_limited"),
        ratios=(
            Ratio(
                name="new_users",
                title="new users / known users",
                numerator="headroom_new_users",
                denominator="headroom_warm_own_64x16",
            ),
        ),
        goals=(
            Goal(name="new_users", title="rate, new users / known users", of="new_users", at_least=0.22),
            Goal(
                name="new_users_refused",
                title="new users refused, 64 × 16",
                of="headroom_new_users_limited",
                field="refused",
                at_most=0,
            ),
        ),
    ),
    Scenario(
        name="new_month",
        stage="month",
        title="each user's first message of a month",
        measurements=("headroom_within_month", "headroom_new_month"),
        ratios=(
            Ratio(
                name="new_month",
                title="first messages of a month / later ones",
                numerator="headroom_new_month",
                denominator="headroom_within_month",
            ),
        ),
        goals=(
            Goal(name="new_month", title="rate, first messages of a month / later ones", of="new_month", at_least=0.22),
        ),
    ),
    Scenario(
        name="plan_edit",
        stage="plan_edit",
        title="each user's first message after an edit of the plan",
        measurements=("headroom_before_edit", "headroom_after_edit"),
        ratios=(
            Ratio(
                name="plan_edit",
                title="just after an edit of the plan / before",
                numerator="headroom_after_edit",
                denominator="headroom_before_edit",
            ),
        ),
        goals=(
            Goal(name="plan_edit", title="rate, just after an edit of the plan / before", of="plan_edit", at_least=0.35),
        ),
    ),
    Scenario(
        name="rotation",
        stage="rotation",
        title="more users in turn than are cached",
        measurements=("headroom_rotation", "headroom_rotation_cached"),
        ratios=(
            Ratio(
                name="rotation",
                title=f"{ROTATION_USERS:,} users in turn / {USERS:,}",
                numerator="headroom_rotation",
                denominator="headroom_rotation_cached",
            ),
        ),
        goals=(
            Goal(
                name="rotation",
                title=f"rate, {ROTATION_USERS:,} users in turn / {USERS:,}",
                of="rotation",
                at_least=0.45,
            ),
        ),
    ),
    Scenario(
        name="connections",
        stage="curves",
        title="over connections, 16 in flight on each",
        measurements=tuple(f"headroom_connections_{count}" for count in CURVE_CONNECTIONS),
    ),
    Scenario(
        name="users",
        stage="curves",
        title="64 × 16 over users",
        measurements=tuple(f"headroom_users_{count}" for count in CURVE_USERS),
    ),
    # The last of the default scenarios, because the disk stays busy with its writes for a while.
    Scenario(
        name="rows",
        stage="rows",
        title="64 × 16 over users and rows",
        measurements=tuple(f"headroom_rows_{count}{when}" for when in ("", "_fresh") for count in CURVE_ROWS),
        ratios=tuple(
            Ratio(
                name=f"rows_{count}{when}",
                title=f"{count:,} rows / {CURVE_ROWS[0]:,}{(', just after a checkpoint' if when else '')}",
                numerator=f"headroom_rows_{count}{when}",
                denominator=f"headroom_rows_{CURVE_ROWS[0]}{when}",
            )
            for when in ("", "_fresh")
            for count in CURVE_ROWS[1:]
        ),
        goals=(
            Goal(
                name="rows",
                title=f"rate, {CURVE_ROWS[-1]:,} rows / {CURVE_ROWS[0]:,}",
                of=f"rows_{CURVE_ROWS[-1]}",
                at_least=0.5,
            ),
        ),
    ),
    Scenario(
        name="soak", stage="soak", title="full load for long, 64 × 16, 100,000 users", measurements=("soak_minute",)
    ),
)
