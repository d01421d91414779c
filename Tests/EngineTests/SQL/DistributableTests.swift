import Foundation
import Postgres
import TestSupport
import Testing

@testable import Engine

/// The rules of docs/decisions/0026-sql-for-a-distributed-database.md.
@Suite("SQL for a distributed database")
struct DistributableTests {
    /// Tables with a column user_id that have no bucket, and why.
    private static let whole: [String: String] = [
        "headroom.billing_events": "about a customer, who may be several users, or nobody yet",
        "headroom.notifications": "used by sessions to the coordinator only, a few times a month for each user",
        "headroom.message_purchases": "found by the store's name for it; a refund names no user",
    ]

    /// A query for the tables with a bucket: oid and name of each.
    private static let tables = """
        select class.oid, format('%s.%s', class.relnamespace::regnamespace, class.relname) as name
        from pg_class as class
        where class.relkind in ('r', 'p') and class.relnamespace in ('headroom'::regnamespace, 'public'::regnamespace)
            and (
                class.oid in ('headroom.lane_receipts'::regclass, 'headroom.spent_trials'::regclass)
                or exists (
                    select from pg_attribute as attribute
                    where attribute.attrelid = class.oid and attribute.attname = 'user_id' and not attribute.attisdropped
                )
            )
            and format('%s.%s', class.relnamespace::regnamespace, class.relname)
                not in (\(whole.keys.map { "'\($0)'" }.joined(separator: ", ")))
        """

    @Test("has a bucket in each table of users, and in the lanes' receipts")
    func buckets() async throws {
        let psql = try await TestDatabase.fresh().psql
        let lacking = try await psql.rows(
            """
            select tables.name from (\(Self.tables)) as tables
            where not exists (
                select from pg_attribute as attribute
                join pg_attrdef as value on value.adrelid = attribute.attrelid and value.adnum = attribute.attnum
                where attribute.attrelid = tables.oid and attribute.attname = 'bucket' and attribute.attnotnull
                    and attribute.atttypid = 'smallint'::regtype and pg_get_expr(value.adbin, value.adrelid) = '0'
            )
            """
        )
        #expect(lacking == [])
        #expect(try await psql.number("select count(*) from (\(Self.tables)) as tables") == 9)
        for table in Self.whole.keys {
            #expect(try await psql.text("select to_regclass('\(table)')") != nil, "\(table)")
        }
    }

    @Test("has the bucket first in the primary keys of these tables")
    func primaryKeys() async throws {
        let psql = try await TestDatabase.fresh().psql
        let others = try await psql.rows(
            """
            select tables.name from (\(Self.tables)) as tables
            where not exists (
                select from pg_index as index
                join pg_attribute as attribute
                    on attribute.attrelid = index.indrelid and attribute.attnum = index.indkey[0]
                where index.indrelid = tables.oid and index.indisprimary and attribute.attname = 'bucket'
            )
            """
        )
        // Older clients write it with `on conflict (user_id, billing_period)`, which needs a key of just these two.
        #expect(others == ["public.message_usage"])
    }

    @Test("has foreign keys of these tables only within a bucket, or to the plans")
    func foreignKeys() async throws {
        let psql = try await TestDatabase.fresh().psql
        let leaving = try await psql.rows(
            """
            with tables as (\(Self.tables))
            select format('%s: %s', rule.conrelid::regclass, pg_get_constraintdef(rule.oid))
            from pg_constraint as rule
            where rule.contype = 'f'
                and (rule.conrelid in (select oid from tables) or rule.confrelid in (select oid from tables))
                -- Each machine has a copy of the plans.
                and rule.confrelid <> 'headroom.plans'::regclass
                and not (
                    rule.conrelid in (select oid from tables) and rule.confrelid in (select oid from tables)
                    and exists (
                        select from unnest(rule.conkey, rule.confkey) as pair (own, referenced)
                        join pg_attribute as own
                            on own.attrelid = rule.conrelid and own.attnum = pair.own and own.attname = 'bucket'
                        join pg_attribute as referenced
                            on referenced.attrelid = rule.confrelid and referenced.attnum = pair.referenced
                                and referenced.attname = 'bucket'
                    )
                )
            """
        )
        #expect(leaving == [])
    }

    @Test("passes no table row to a function")
    func arguments() async throws {
        let psql = try await TestDatabase.fresh().psql
        let taking = try await psql.rows(
            """
            select procedure.oid::regprocedure
            from pg_proc as procedure
            cross join unnest(procedure.proargtypes) as argument (type)
            join pg_type as type on type.oid = argument.type
            left join pg_type as element on element.oid = type.typelem
            join pg_class as class on class.oid in (type.typrelid, element.typrelid)
            where procedure.pronamespace in ('headroom'::regnamespace, 'public'::regnamespace)
                -- A type of our own is a class, too: c.
                and class.relkind <> 'c'
            """
        )
        #expect(taking == [])
    }

    /// A file without its comments.
    private static func code(_ file: URL) throws -> String { code(try String(contentsOf: file, encoding: .utf8)) }

    private static func code(_ sql: String) -> String { sql.replacing(/--[^\n]*/, with: "") }

    /// The statements of lanes, except open_lane: it has such a CTE, and is sent once per connection and bucket.
    private static let sent =
        PreparedQuery.lane.filter { $0.name != ReceiptStatement.open.name }.map(\.sql) + [
            EmbeddedSQL.advanceReceipt, EmbeddedSQL.readReceiptAnswer, EmbeddedSQL.grantMessages,
            EmbeddedSQL.readLockedUsers,
        ]

    /// The functions of lanes' statements and of triggers, with all functions that these call: name and body.
    private static func passed() throws -> [String: String] {
        var bodies: [String: String] = [:]
        for file in try SchemaFilesTests.files(in: "functions") {
            let name = String(file.lastPathComponent.prefix { $0 != "." })
            bodies[name, default: ""] += try code(file)
        }
        var passed: [String: String] = [:]
        var texts = sent.map(code) + [try code(SchemaFilesTests.root.appending(path: "triggers.sql"))]
        while let text = texts.popLast() {
            for match in text.matches(of: /headroom\.(\w+)\s*\(/) {
                let name = String(match.1)
                guard passed[name] == nil, let body = bodies[name] else { continue }
                passed[name] = body
                texts.append(body)
            }
        }
        return passed
    }

    @Test("has no modifying CTE on the path of a message")
    func plainStatements() throws {
        let passed = try Self.passed()
        for name in [
            "count_batch", "derive_and_count", "count_derived_rows", "count_edited_rows", "lock_and_read_users",
            "write_usage_rows", "create_first_subscriptions", "entitlement",
            "advance_entitlement_version",
        ] {
            #expect(passed[name] != nil, "\(name)")
        }
        let modifying = /(?i)\bas\s+(?:not\s+)?(?:materialized\s*)?\(\s*(?:insert|update|delete)\b/
        #expect(passed.filter { $0.value.contains(modifying) }.keys.sorted() == [])
        #expect(Self.sent.filter { Self.code($0).contains(modifying) } == [])
        let opening = Self.code(EmbeddedSQL.openLane)
        #expect(opening.contains(modifying), "the exception is not needed any more")
    }

    @Test("names no table of the coordinator on the path of a message")
    func workersTables() async throws {
        let psql = try await TestDatabase.fresh().psql
        let local = try await psql.rows(
            """
            select format('headroom.%s', class.relname) from pg_class as class
            where class.relnamespace = 'headroom'::regnamespace and class.relkind = 'r'
                and format('headroom.%s', class.relname)
                    <> all(headroom.distributed_tables() || headroom.reference_tables())
            """
        )
        #expect(local.contains("headroom.message_purchases"))
        // A trigger of a table of the coordinator, and one that refuses before it reads any.
        let exceptions = ["check_and_stamp_token", "rename_plan"]
        for (name, body) in try Self.passed() where !exceptions.contains(name) {
            let named = Set(body.matches(of: /headroom\.\w+(?!\s*\()\b/).map { String($0.0) })
            #expect(named.intersection(local) == [], "\(name)")
        }
    }

    @Test("sets no column to an element of an array: Citus 13.2.0 crashes if the column's type is a domain")
    func elements() throws {
        let assignment = /(?i)(?:\bset|,)\s+"?\w+"?\s+=\s+\w+\[/
        for file in try SchemaFilesTests.files(in: "functions") + SchemaFilesTests.files(in: "queries") {
            for update in try Self.code(file).matches(of: /(?i)\bupdate\b[^;]*?\bset\b[^;]*?(?:\bwhere\b|;)/) {
                #expect(!update.0.contains(assignment), "\(file.lastPathComponent)")
            }
        }
    }

    @Test("calls no volatile function in a RETURNING list")
    func returning() async throws {
        let psql = try await TestDatabase.fresh().psql
        let volatile = Set(try await psql.rows("select distinct proname from pg_proc where provolatile = 'v'"))
        #expect(volatile.contains("gen_random_uuid") && volatile.contains("nextval"))
        var lists = 0
        for file in try SchemaFilesTests.files(in: "functions") + SchemaFilesTests.files(in: "queries") {
            for list in try Self.code(file).matches(of: /(?i)\breturning\b([^;]*)/) {
                lists += 1
                let called = list.1.matches(of: /(\w+)\s*\(/).map { String($0.1) }
                #expect(called.filter(volatile.contains) == [], "\(file.lastPathComponent)")
            }
        }
        #expect(lists > 10)
    }
}
