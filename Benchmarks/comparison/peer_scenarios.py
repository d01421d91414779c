"""Scenarios beside the function, Redis and the ceiling."""

from .scenario import Goal, Ratio, Scenario
from .titles import (
    CLIENTS,
    HOLDS,
    ONE_USER_CLIENTS,
    clients_name,
    load_name,
)

#: The servers of the scenario with the ceiling, and its loads besides one request at a time.
SERVERS = {"ceiling": "ceiling", "statement": "ceiling with Headroom's statement", "headroom": "Headroom"}
LOADS = {"64x1": "64 × 1", "64x16": "64 × 16", "one_user": "64 × 16, one user"}
HALF_LOADS = {"half_load": "64 × 16", "half_single": "64 × 1"}


def beside(one: str, other: str) -> tuple[Ratio, ...]:
    """How much of the other server's rates and of its speed with one request at a time a server reaches."""
    rates = (
        Ratio(
            name=f"{one}_to_{other}_{load}",
            title=f"{SERVERS[one]} / {SERVERS[other]}, {words}",
            numerator=f"{one}_{load}",
            denominator=f"{other}_{load}",
        )
        for load, words in LOADS.items()
    )
    single = Ratio(
        name=f"{one}_to_{other}_single",
        title=f"{SERVERS[other]} / {SERVERS[one]}, one at a time, p50",
        numerator=f"{other}_single",
        denominator=f"{one}_single",
        field="p50_ms",
    )
    return (*rates, single)


#: What Headroom's service costs: how much it reaches of a server that only executes the same statements.
SERVICE = (
    *beside("headroom", "statement"),
    Ratio(
        name="headroom_to_statement_keys",
        title=f"Headroom / {SERVERS['statement']}, a key on every request",
        numerator="headroom_with_keys",
        denominator="statement_with_keys",
    ),
)
#: What the statements cost beside the ceiling's.
STATEMENT = beside("statement", "ceiling")
STATEMENT_KEYS = (
    Ratio(
        name="statement_keys_to_no_keys",
        title=f"a key on every request / none, {SERVERS['statement']}",
        numerator="statement_with_keys",
        denominator="statement_without_keys",
    ),
)

PEER_SCENARIOS = (
    Scenario(
        name="function",
        stage="main",
        title="the plpgsql function",
        measurements=(
            "function_1_client",
            *(f"function_{clients_name(clients)}" for clients in CLIENTS),
            "function_best",
            *(f"function_one_user_{clients_name(clients)}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
        ),
        ratios=(
            Ratio(
                name="one_user_to_uniform",
                title="function, one user / 100,000 users",
                numerator="function_one_user",
                denominator="function_best",
            ),
        ),
    ),
    Scenario(
        name="throughput",
        stage="main",
        title="64 connections, 1 and 16 requests in flight, 100,000 users",
        measurements=(
            *(f"function_{clients_name(clients)}" for clients in CLIENTS),
            "function_best",
            "redis_64x1",
            "headroom_64x1",
            "redis_64x16",
            "headroom_64x16",
        ),
        ratios=(
            Ratio(
                name="headroom_to_function_64x1",
                title="Headroom 64 × 1 / function",
                numerator="headroom_64x1",
                denominator="function_best",
            ),
            Ratio(
                name="headroom_to_function_64x16",
                title="Headroom 64 × 16 / function",
                numerator="headroom_64x16",
                denominator="function_best",
            ),
            Ratio(
                name="headroom_to_redis_64x1",
                title="Headroom / Redis, 64 × 1",
                numerator="headroom_64x1",
                denominator="redis_64x1",
            ),
            Ratio(
                name="headroom_to_redis_64x16",
                title="Headroom / Redis, 64 × 16",
                numerator="headroom_64x16",
                denominator="redis_64x16",
            ),
        ),
        goals=(
            Goal(
                name="function_64x1", title="Headroom 64 × 1 / function", of="headroom_to_function_64x1", at_least=1.4
            ),
            Goal(
                name="function_64x16",
                title="Headroom 64 × 16 / function",
                of="headroom_to_function_64x16",
                at_least=4.5,
            ),
            Goal(name="redis_64x16", title="Headroom / Redis, 64 × 16", of="headroom_to_redis_64x16", at_least=0.55),
        ),
    ),
    Scenario(
        name="ceiling",
        stage="main",
        title="the C ceiling, and with Headroom's statement",
        measurements=(
            *(f"{server}_{load}" for load in (*LOADS, "single") for server in SERVERS),
            "statement_without_keys",
            "statement_with_keys",
            "headroom_with_keys",
        ),
        ratios=(*beside("headroom", "ceiling"), *SERVICE, *STATEMENT, *STATEMENT_KEYS),
        goals=tuple(
            Goal(name=ratio.name, title=ratio.title, of=ratio.name, at_least=bound)
            for ratios, bound in ((SERVICE, 0.75), (STATEMENT[:-1], 0.75), (STATEMENT[-1:], 0.4))
            for ratio in ratios
        ),
    ),
    Scenario(
        name="zipf",
        stage="main",
        title="64 × 16, users by Zipf's law",
        measurements=("redis_zipf", "headroom_zipf"),
        ratios=(
            Ratio(
                name="headroom_zipf_to_redis_zipf",
                title="Headroom / Redis, 64 × 16, Zipf",
                numerator="headroom_zipf",
                denominator="redis_zipf",
            ),
        ),
        goals=(
            Goal(name="zipf", title="Headroom / Redis, 64 × 16, Zipf", of="headroom_zipf_to_redis_zipf", at_least=0.7),
        ),
    ),
    Scenario(
        name="one_user",
        stage="main",
        title="64 × 16, all on one user",
        measurements=(
            *(f"function_one_user_{clients_name(clients)}" for clients in ONE_USER_CLIENTS),
            "function_one_user",
            "redis_one_user",
            "headroom_one_user",
        ),
        ratios=(
            Ratio(
                name="headroom_one_user_to_function",
                title="Headroom / function, one user",
                numerator="headroom_one_user",
                denominator="function_one_user",
            ),
            Ratio(
                name="headroom_one_user_to_redis",
                title="Headroom / Redis, one user",
                numerator="headroom_one_user",
                denominator="redis_one_user",
            ),
        ),
        goals=(
            Goal(
                name="one_user", title="Headroom / function, one user", of="headroom_one_user_to_function", at_least=45
            ),
        ),
    ),
    Scenario(
        name="keys",
        stage="main",
        title="64 × 16, a new key on every request",
        measurements=("headroom_without_keys", "headroom_with_keys"),
        ratios=(
            Ratio(
                name="keys_to_no_keys",
                title="a key on every request / none",
                numerator="headroom_with_keys",
                denominator="headroom_without_keys",
            ),
        ),
        goals=(Goal(name="keys", title="a key on every request / none", of="keys_to_no_keys", at_least=0.55),),
    ),
    Scenario(
        name="holds",
        stage="holds",
        title="RESERVE and COMMIT in turn, 64 connections",
        measurements=tuple(
            f"headroom_{kind}_{load_name(pipeline)}" for pipeline in HOLDS for kind in ("keyed", "holds")
        ),
        ratios=tuple(
            (
                Ratio(
                    name=f"holds_{load_name(pipeline)}",
                    title=title,
                    numerator=f"headroom_holds_{load_name(pipeline)}",
                    denominator=f"headroom_keyed_{load_name(pipeline)}",
                )
                for pipeline, title in HOLDS.items()
            )
        ),
        goals=tuple(
            (
                Goal(name=f"holds_{load_name(pipeline)}", title=title, of=f"holds_{load_name(pipeline)}", at_least=bound)
                for (pipeline, title), bound in zip(HOLDS.items(), (0.6, 0.5), strict=True)
            )
        ),
    ),
    Scenario(
        name="parts",
        stage="parts",
        title="64 × 16, a model or a member with a limit of its own, or a balance",
        measurements=("headroom_without_parts", "headroom_with_model", "headroom_with_member", "headroom_with_balance"),
        ratios=tuple(
            Ratio(
                name=f"{part}_to_none",
                title=f"a {part} {of} / none",
                numerator=f"headroom_with_{part}",
                denominator="headroom_without_parts",
            )
            for part, of in (("model", "on every request"), ("member", "on every request"), ("balance", "of every user"))
        ),
        goals=(
            Goal(name="model", title="a model on every request / none", of="model_to_none", at_least=0.45),
            Goal(name="member", title="a member on every request / none", of="member_to_none", at_least=0.35),
            Goal(name="balance", title="a balance of every user / none", of="balance_to_none", at_least=0.35),
        ),
    ),
    Scenario(
        name="one_at_a_time",
        stage="main",
        title="one connection, one request at a time",
        measurements=("function_1_client", "headroom_single"),
        ratios=(
            Ratio(
                name="single_p50_to_function",
                title="Headroom / function, p50",
                numerator="headroom_single",
                denominator="function_1_client",
                field="p50_ms",
            ),
        ),
        goals=(
            Goal(
                name="single_p50",
                title="p50, one at a time, Headroom / function",
                of="single_p50_to_function",
                at_most=4,
            ),
        ),
    ),
    Scenario(
        name="half_load",
        stage="main",
        title="half of the highest rate, open loop",
        measurements=(
            "headroom_64x16",
            "headroom_64x1",
            *(f"{server}_{load}" for load in HALF_LOADS for server in ("statement", "headroom")),
        ),
        ratios=tuple(
            Ratio(
                name=f"{load}_p99_to_statement",
                title=f"p99, Headroom / {SERVERS['statement']}, half of {words}",
                numerator=f"headroom_{load}",
                denominator=f"statement_{load}",
                field="p99_ms",
            )
            for load, words in HALF_LOADS.items()
        ),
        # Half of 64 × 16 without pipelining is about all that two processors can do.
        goals=(
            Goal(
                name="half_single_p99",
                title=f"p99 at half load of 64 × 1, Headroom / {SERVERS['statement']}",
                of="half_single_p99_to_statement",
                at_most=2,
            ),
        ),
    ),
)
