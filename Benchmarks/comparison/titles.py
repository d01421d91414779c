"""The numbers of the measurements, and what each measurement is called.

"64 × 16" means 64 connections with 16 requests in flight on each.
"""

CLIENTS = (8, 16, 32, 64)
#: Fewer clients are faster if all wait for the lock of one row.
ONE_USER_CLIENTS = (1, 4, *CLIENTS)
USERS = 100_000
#: Requests in flight on each connection with holds, and the title of the ratio.
HOLDS = {
    pipeline: f"RESERVE/COMMIT in turn / CONSUME with keys, requests, 64 × {pipeline}" for pipeline in (4, 16)
}
CURVE_CONNECTIONS = (1, 4, 16, 64, 256, 1024)
CURVE_USERS = (1, 100, 10_000, 100_000)
CURVE_ROWS = (100_000, 1_000_000, 10_000_000)
NEW_USERS = 100_000
#: Four times as many as the service caches.
ROTATION_USERS = 4 * 262_144
IDLE_CONNECTIONS = 10_000
HTTP_PER_SECOND = 5_000
FLUSH_MILLISECONDS = 5
#: How the port is secured, in the order of measurement.
PROTECTIONS = {"open": "open", "token": "with a token", "tls": "over TLS", "token_tls": "with a token, over TLS"}

#: Which period is open for the users.
PERIODS = {"month": "the calendar month", "own": "a trial or an anchor day"}



def load_name(pipeline: int) -> str:
    """In the name of a measurement: 64 connections, each with that many requests in flight."""
    return f"64x{pipeline}"


def clients_name(count: int) -> str:
    """In the name of a measurement by pgbench."""
    return f"{count}_client{'s' * (count > 1)}"


#: What each measurement is called in the output, by its name.
TITLES = {
    "function_1_client": "plpgsql function, 1 client",
    **{f"function_{clients_name(clients)}": f"plpgsql function, {clients} clients" for clients in CLIENTS},
    "function_best": "plpgsql function per message, best of 8, 16, 32, 64 clients",
    **{
        f"function_one_user_{clients_name(clients)}": f"plpgsql function, {clients} client{'s' * (clients > 1)}, one user"
        for clients in ONE_USER_CLIENTS
    },
    "function_one_user": "plpgsql function, best of 1, 4, 8, 16, 32, 64 clients, all on one user",
    "redis_64x1": "Redis and Lua, 64 connections",
    "redis_64x16": "Redis and Lua, 64 connections, 16 pipelined",
    "redis_zipf": "Redis and Lua, 64 × 16, users by Zipf's law",
    "redis_one_user": "Redis and Lua, 64 × 16, all on one user",
    "ceiling_64x1": "C ceiling, 64 connections",
    "ceiling_64x16": "C ceiling, 64 connections, 16 pipelined",
    "ceiling_one_user": "C ceiling, 64 × 16, all on one user",
    "ceiling_single": "C ceiling, 1 connection, one request at a time",
    "statement_64x1": "C ceiling with Headroom's statement, 64 connections",
    "statement_64x16": "C ceiling with Headroom's statement, 64 connections, 16 pipelined",
    "statement_one_user": "C ceiling with Headroom's statement, 64 × 16, all on one user",
    "statement_single": "C ceiling with Headroom's statement, 1 connection, one request at a time",
    "statement_without_keys": "C ceiling with Headroom's statement, 64 × 16, no keys",
    "statement_with_keys": "C ceiling with Headroom's statement, 64 × 16, a new key on every request",
    "headroom_64x1": "Headroom, 64 connections",
    "headroom_64x16": "Headroom, 64 connections, 16 pipelined",
    "headroom_zipf": "Headroom, 64 × 16, users by Zipf's law",
    "headroom_one_user": "Headroom, 64 × 16, all on one user",
    "headroom_without_keys": "Headroom, 64 × 16, no keys",
    "headroom_with_keys": "Headroom, 64 × 16, a new key on every request",
    **{
        f"headroom_{kind}_{load_name(pipeline)}": f"Headroom, 64 × {pipeline}, {words}"
        for pipeline in HOLDS
        for kind, words in (("keyed", "CONSUME with a new key"), ("holds", "RESERVE and COMMIT in turn"))
    },
    "headroom_without_parts": "Headroom, 64 × 16, no model",
    "headroom_with_model": "Headroom, 64 × 16, a model with a limit on every request",
    "headroom_with_member": "Headroom, 64 × 16, a member with a limit on every request",
    "headroom_with_balance": "Headroom, 64 × 16, messages that are taken from a balance",
    "headroom_single": "Headroom, 1 connection, one request at a time",
    "headroom_half_load": "Headroom, 64 connections, half of what 64 × 16 brings, open loop",
    "headroom_half_single": "Headroom, 64 connections, half of what 64 × 1 brings, open loop",
    "statement_half_load": "C ceiling with Headroom's statement, at the rate of half of Headroom's 64 × 16, open loop",
    "statement_half_single": "C ceiling with Headroom's statement, at the rate of half of Headroom's 64 × 1, open loop",
    "function_undisturbed": "plpgsql function, 64 clients, the disk as it is",
    "function_slow_disk": f"plpgsql function, 64 clients, {FLUSH_MILLISECONDS} ms a flush",
    "redis_undisturbed": "Redis and Lua, 64 × 16, the disk as it is",
    "redis_slow_disk": f"Redis and Lua, 64 × 16, {FLUSH_MILLISECONDS} ms a flush",
    "headroom_undisturbed": "Headroom, 64 × 16, the disk as it is",
    "headroom_slow_disk": f"Headroom, 64 × 16, {FLUSH_MILLISECONDS} ms a flush",
    "headroom_alone": "Headroom, 64 × 16, no other connection",
    "headroom_among_idle": f"Headroom, 64 × 16, and {IDLE_CONNECTIONS:,} idle connections",
    **{
        f"headroom_{kind}_{load_name(pipeline)}": f"Headroom, 64 × {pipeline}, {words}"
        for kind, words in PROTECTIONS.items()
        for pipeline in (1, 16)
    },
    "headroom_line_64x1": "line protocol, 64 × 1",
    "headroom_http_64": "HTTP, 64 keep-alive connections",
    "headroom_line_half": "line protocol, open loop at half of 64 × 1",
    "headroom_line_half_beside_http": f"the same, beside {HTTP_PER_SECOND:,} messages a second over HTTP",
    "headroom_quiet_full": "Headroom, 64 × 16, idle HTTP server",
    "headroom_visited_full": "Headroom, 64 × 16, metrics scraped, dashboard open, up to 200 store events a second",
    "headroom_quiet_half": "Headroom, open loop at half of that, idle HTTP server",
    "headroom_visited_half": "Headroom, open loop at half of that, metrics scraped, dashboard open, up to 200 events/s",
    "renewals_alone": "renewals on 8 connections, no messages",
    "headroom_unrenewed_full": "Headroom, 64 × 16, no renewals",
    "headroom_unrenewed_half": "Headroom, open loop at half of that, no renewals",
    "headroom_renewed_half": "Headroom, open loop at half of that, 200 renewals a second",
    **{
        f"headroom_{kind}_{period}_{load_name(pipeline)}": f"Headroom, 64 × {pipeline}, {when}, {words}"
        for period, words in PERIODS.items()
        for pipeline in (1, 16)
        for kind, when in (("cold", "just after a restart"), ("warm", "all users cached"))
    },
    "headroom_new_users": "Headroom, 64 × 16, each user new",
    "headroom_new_users_limited": "Headroom, 64 × 16, each user new, default time limits",
    "headroom_within_month": "Headroom, 64 × 16, within a month",
    "headroom_new_month": "Headroom, 64 × 16, each user's first message of a month",
    "headroom_before_edit": "Headroom, 64 × 16, the plan as it was",
    "headroom_after_edit": "Headroom, 64 × 16, each user's first message after an edit of the plan",
    "headroom_rotation": f"Headroom, 64 × 16, {ROTATION_USERS:,} users in turn",
    "headroom_rotation_cached": f"Headroom, 64 × 16, {USERS:,} of {ROTATION_USERS:,} users in turn",
    **{f"headroom_rows_{count}": f"Headroom, 64 × 16, {count:,} users and rows" for count in CURVE_ROWS},
    **{
        f"headroom_rows_{count}_fresh": f"Headroom, 64 × 16, {count:,} users and rows, just after a checkpoint"
        for count in CURVE_ROWS
    },
    **{f"headroom_connections_{count}": f"Headroom, {count:,} × 16" for count in CURVE_CONNECTIONS},
    **{f"headroom_users_{count}": f"Headroom, 64 × 16, {count:,} user{'s' * (count > 1)}" for count in CURVE_USERS},
    "soak_minute": "Headroom, 64 × 16, a minute of the soak",
}
