import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("The report reader")
struct ReportReaderTests {
    /// Rows of several plans, tiers and periods, over more than one range of pages. Few rows fill a page, so that the
    /// table is quickly filled. The triggers are off because they would write each row to the audit log.
    private static let rows = """
        alter table public.message_usage set (fillfactor = 10);
        set session_replication_role = replica;
        insert into headroom.plans (plan, label, cycle, allowance, gentle_percent, prominent_percent)
            values ('team', 'Team', 'monthly', 100, 10, 50);
        insert into public.message_usage (
            user_id, billing_period, message_count, "limit", plan, plan_limit, updated_at, resets_at, usable_until,
            plan_revision
        )
        select
            ('00000000-0000-4000-8000-' || lpad(to_hex(number), 12, '0'))::uuid,
            case number % 10 when 0 then '2026-10' else '2026-11' end,
            (number * 7919) % 900, case when plan <> 'pro' then case plan when 'team' then 100 else 800 end end, plan,
            case plan when 'team' then 100 when 'paid' then 800 end, '2026-10-01Z', ends.at, ends.at,
            (select revision from headroom.plan_revision)
        from generate_series(1, 24000) as number
        cross join lateral (
            select case number % 10 when 0 then timestamptz '2026-11-01Z' else '2026-12-01Z' end as at
        ) as ends
        cross join lateral (select (array['paid', 'pro', 'team', null])[1 + number % 4] as plan) as plans;
        reset session_replication_role;
        """

    private func filled(with more: String = "") async throws -> TestDatabase {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(ReportReaderTests.rows + more)
        try await database.stopClock(at: at("2026-11-15"))
        return database
    }

    private func expected(_ database: TestDatabase, _ period: String) async throws -> String? {
        try await database.psql.text(
            """
            select concat_ws(' ', count(*), sum(used), count(*) filter (where tier = 'silent'),
                count(*) filter (where tier = 'gentle'), count(*) filter (where tier = 'prominent'),
                count(*) filter (where tier = 'blocked'))
            from monthly_usage where billing_period = '\(period)'
            """
        )
    }

    private func summary(_ outcome: Outcome) -> String? {
        guard case .report(let report) = outcome else { return nil }
        return ([report.users, report.messages] + Tier.allCases.map { report.users(in: $0) })
            .map(String.init).joined(separator: " ")
    }

    @Test("a report equals the view monthly_usage, over many pages")
    func report() async throws {
        let database = try await filled()
        let pages = try await database.psql.number("pg_relation_size('message_usage') / 8192")
        #expect(try #require(pages) > Int(PagedTableScan.rangePages))
        let engine = EngineHarness(database.conninfo)
        try await engine.running {
            let current = try await engine.read(.report(.open))
            let open = try await expected(database, "2026-11")
            #expect(summary(current) == open, "their labels are this month's")
            let november = try await engine.read(.report(billingPeriod("2026-11")))
            #expect(summary(november) == open)
            let october = try await expected(database, "2026-10")
            let past = try await engine.read(.report(billingPeriod("2026-10")))
            #expect(summary(past) == october)
            let none = try await engine.read(.report(billingPeriod("2026-01")))
            #expect(summary(none) == "0 0 0 0 0 0")
        }
    }

    @Test("the report of all periods equals the reports of each")
    func allPeriods() async throws {
        try await EngineHarness.serving(filled()) { database, engine in
            guard case .periods(let all) = try await engine.read(.allPeriods) else {
                Issue.record("no periods")
                return
            }
            #expect(all.current == billingPeriod("2026-11"))
            #expect(Set(all.reports.map(\.period)) == [billingPeriod("2026-10"), billingPeriod("2026-11")])
            for report in all.reports {
                let expected = try await expected(database, report.period.label)
                #expect(summary(.report(report)) == expected)
                #expect(all.report(of: report.period) == report)
            }
            #expect(all.report(of: billingPeriod("2026-01")) == PeriodReport(period: billingPeriod("2026-01")))
            let open = try await expected(database, "2026-11")
            #expect(summary(.report(all.report(of: .open))) == open)
            #expect(all.open.period == .open)
            let october = billingPeriod("2026-10")
            for (period, rows) in [(BillingPeriod.open, "is_open"), (october, "billing_period = '2026-10'")] {
                let plans = try #require(all.plans[period]).map {
                    "\($0.plan ?? "-") \($0.users) \($0.messages) \($0.blocked)"
                }
                let wanted = try await database.psql.text(
                    """
                    select string_agg(concat_ws(' ', coalesce(plan, '-'), users, messages, blocked), ',' order by plan)
                    from (
                        select plan, count(*) as users, sum(used) as messages,
                            count(*) filter (where tier = 'blocked') as blocked
                        from monthly_usage where \(rows) group by plan
                    ) as plans
                    """
                )
                #expect(plans.sorted() == wanted?.split(separator: ",").map(String.init).sorted())
            }
        }
    }

    @Test("a month's report has all of its periods, and counts each user once, by the last")
    func numbered() async throws {
        let database = try await filled(
            with: """
                set session_replication_role = replica;
                insert into public.message_usage (
                    user_id, billing_period, message_count, "limit", plan, plan_limit, updated_at, resets_at, usable_until,
                    plan_revision
                )
                select
                    user_id, billing_period || '.' || number, message_count / number, "limit", plan, plan_limit,
                    updated_at, resets_at, usable_until, plan_revision
                from public.message_usage
                cross join generate_series(2, 11) as number
                where billing_period = '2026-10' and message_count % 7 = 0;
                reset session_replication_role;
                """
        )
        let expected = try await database.psql.text(
            """
            select concat_ws(' ', count(*) filter (where is_last), sum(used),
                count(*) filter (where is_last and tier = 'silent'), count(*) filter (where is_last and tier = 'gentle'),
                count(*) filter (where is_last and tier = 'prominent'), count(*) filter (where is_last and tier = 'blocked'))
            from (
                select used, tier, row_number() over (
                    partition by user_id order by length(billing_period) desc, billing_period desc
                ) = 1 as is_last
                from monthly_usage where billing_period like '2026-10%'
            ) as rows
            """
        )
        let view = try await database.psql.text(
            """
            select concat_ws(' ', users, messages, silent, gentle, prominent, blocked)
            from billing_period_report where billing_period = '2026-10'
            """
        )
        #expect(view == expected)
        let engine = EngineHarness(database.conninfo)
        try await engine.running {
            let october = billingPeriod("2026-10")
            let report = try await engine.read(.report(october))
            #expect(summary(report) == expected)
            guard case .periods(let all) = try await engine.read(.allPeriods) else {
                Issue.record("no periods")
                return
            }
            #expect(summary(.report(all.report(of: october))) == expected)
            let plans = try #require(all.plans[october])
            #expect(plans.reduce(0) { $0 + $1.users } == all.report(of: october).users)
            #expect(plans.reduce(0) { $0 + $1.messages } == all.report(of: october).messages)
            #expect(plans.reduce(0) { $0 + $1.blocked } == all.report(of: october).users(in: .blocked))
            let eleventh = try await engine.read(.report(billingPeriod("2026-10.11")))
            #expect(summary(eleventh) == summary(.report(all.report(of: billingPeriod("2026-10.11")))))
        }
    }

    @Test("a slow page range is followed by a smaller one, and fast ones by larger ones again")
    func pageRanges() {
        var scan = PagedTableScan(.report(.open), InvalidValueLog(.silent))
        let first = scan.rangePages
        scan.adaptRange(to: .milliseconds(40 * first))
        #expect(scan.rangePages == first / 2)
        for _ in 0..<20 { scan.adaptRange(to: .milliseconds(40 * scan.rangePages)) }
        let smallest = scan.rangePages
        #expect(smallest > 0)
        scan.adaptRange(to: .milliseconds(200))
        #expect(scan.rangePages == smallest)
        for _ in 0..<20 { scan.adaptRange(to: .milliseconds(1)) }
        #expect(scan.rangePages == first)
    }

    @Test("a page range stays large if smaller ones take as long")
    func planningTime() {
        var scan = PagedTableScan(.report(.open), InvalidValueLog(.silent))
        let first = scan.rangePages
        for _ in 0..<20 {
            scan.adaptRange(to: .milliseconds(400) + .microseconds(10 * scan.rangePages))
            #expect(scan.rangePages >= first / 2)
        }
    }

    @Test("the top users are those of the sorted table")
    func top() async throws {
        try await EngineHarness.serving(filled()) { database, engine in
            for count in [1, 10, 1_000] {
                let outcome = try await engine.read(.top(billingPeriod("2026-11"), count: count))
                guard case .periodUsages(let periods) = outcome else {
                    Issue.record("no list: \(outcome)")
                    return
                }
                let listed = periods.map {
                    "\($0.user)/\($0.used)/\($0.limit.map(String.init) ?? "-")/\($0.tier.rawValue)"
                }
                let sorted = try await database.psql.text(
                    """
                    select string_agg(concat_ws('/', user_id, used, coalesce("limit"::text, '-'), tier), ' '
                        order by used desc, user_id)
                    from (select * from monthly_usage where billing_period = '2026-11'
                          order by used desc, user_id limit \(count)) as most_used
                    """
                )
                #expect(listed.joined(separator: " ") == sorted)
            }
            let none = try await engine.read(.top(billingPeriod("2026-01"), count: 10))
            #expect(none == .periodUsages([]))
        }
    }

    @Test("the users of a tier and a plan are those of the filtered and sorted table")
    func users() async throws {
        try await EngineHarness.serving(filled()) { database, engine in
            for (tier, plan, period) in [
                (Tier.blocked, nil, "2026-11"), (.gentle, "team", "2026-11"), (nil, "paid", "2026-10"),
                (.prominent, "paid", "open"), (nil, nil, "open"),
            ] as [(Tier?, String?, String)] {
                let period = billingPeriod(period)
                let outcome = try await engine.read(.users(period, tier: tier, plan: plan, count: 1_000))
                guard case .periodUsages(let users) = outcome else {
                    Issue.record("no list: \(outcome)")
                    return
                }
                let rows = period == .open ? "is_open" : "billing_period = '\(period.label)'"
                let sorted = try await database.psql.text(
                    """
                    select string_agg(concat_ws('/', user_id, used, tier), ' ' order by used desc, user_id)
                    from (select * from monthly_usage where \(rows)
                          and ('\(tier?.rawValue ?? "")' in (tier, '')) and ('\(plan ?? "")' in (plan, ''))
                          order by used desc, user_id limit 1000) as most_used
                    """
                )
                #expect(!users.isEmpty)
                #expect(users.map { "\($0.user)/\($0.used)/\($0.tier.rawValue)" }.joined(separator: " ") == sorted)
            }
            let none = try await engine.read(.users(.open, tier: .blocked, plan: "gold", count: 10))
            #expect(none == .periodUsages([]))
        }
    }

    @Test("a request times out while the table is locked, and the next one succeeds")
    func deadline() async throws {
        try await EngineHarness.serving(.fresh()) { database, engine in
            try await database.psql.execute("begin; lock table public.message_usage in access exclusive mode")
            let slot = engine.submit(.report(.open), within: .milliseconds(200))
            let outcome = try await engine.outcomes(of: [slot])[0]
            #expect(outcome == .failure(.reportTimedOut))
            try await database.psql.execute("rollback")
            let free = try await engine.read(.report(.open))
            #expect(summary(free) == "0 0 0 0 0 0")
        }
    }

    @Test("a scan starts again on a new connection when its connection is cut")
    func reconnects() async throws {
        try await EngineHarness.serving(filled()) { database, engine in
            try await database.psql.execute("begin; lock table public.message_usage in access exclusive mode")
            let slot = engine.submit(.report(billingPeriod("2026-11")))
            // Not by pg_stat_activity: within a transaction it shows the sessions that there were when it was first
            // read.
            try await waitUntil("the scan waits for the lock") {
                try await database.psql.number(
                    "select count(*) from pg_locks where not granted and relation = 'public.message_usage'::regclass"
                        + " and database = (select oid from pg_database where datname = current_database())"
                ) == 1
            }
            _ = try await database.psql.number(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                    + " where application_name = 'headroom reader' and datname = current_database()"
            )
            try await database.psql.execute("rollback")
            let outcome = try await engine.outcomes(of: [slot])[0]
            let november = try await expected(database, "2026-11")
            #expect(summary(outcome) == november)
        }
    }

    @Test("has no connection before the first request, and no snapshot between page ranges")
    func connections() async throws {
        let database = try await TestDatabase.fresh()
        let engine = EngineHarness(database.conninfo)
        let count =
            "select count(*) from pg_stat_activity where application_name = 'headroom reader'"
            + " and datname = current_database()"
        try await engine.running {
            let before = try await database.psql.number(count)
            #expect(before == 0)
            _ = try await engine.read(.report(.open))
            let after = try await database.psql.number(count + " and backend_xmin is null and state = 'idle'")
            #expect(after == 1)
        }
    }
}
