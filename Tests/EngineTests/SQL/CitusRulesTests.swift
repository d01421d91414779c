import TestSupport
import Testing

/// The rules of docs/decisions/0041-sql-that-citus-can-plan.md that the catalog shows.
@Suite("SQL that Citus can plan")
struct CitusRulesTests {
    private static let ours = "('headroom'::regnamespace, 'public'::regnamespace)"

    @Test("reads tables of users in no function in SQL")
    func languages() async throws {
        let psql = try await TestDatabase.fresh().psql
        let functions = try await psql.rows(
            """
            select distinct function.proname
            from pg_proc as function
            join pg_depend as dependency on dependency.classid = 'pg_proc'::regclass
                and dependency.objid = function.oid and dependency.refclassid = 'pg_class'::regclass
            join pg_class as class on class.oid = dependency.refobjid and class.relkind in ('r', 'v')
            where function.prosqlbody is not null and function.pronamespace in \(Self.ours)
            """
        )
        // The poll for changes, which does not run on Citus yet.
        #expect(functions == ["fingerprint"])
        // A body without dependencies is a text, which this would not find.
        let texts = try await psql.rows(
            """
            select function.oid::regprocedure from pg_proc as function
            join pg_language as language on language.oid = function.prolang
            where language.lanname = 'sql' and function.prosqlbody is null and function.pronamespace in \(Self.ours)
            """
        )
        #expect(texts == [])
    }

    @Test("uses no field of a type in a view or a function in SQL that calls a function returning the type")
    func types() async throws {
        let psql = try await TestDatabase.fresh().psql
        // Citus follows, from a type, everything that uses its fields, and from that every function which it calls.
        let circles = try await psql.rows(
            """
            with users as (
                select dependency.classid, dependency.objid, dependency.refobjid as class
                from pg_depend as dependency
                join pg_class as class on class.oid = dependency.refobjid and class.relkind = 'c'
                    and class.relnamespace = 'headroom'::regnamespace
                where dependency.refclassid = 'pg_class'::regclass and dependency.deptype = 'n'
            )
            select distinct format('%s: %s', users.class::regclass, called.oid::regprocedure)
            from users
            join pg_depend as calls on calls.classid = users.classid and calls.objid = users.objid
                and calls.refclassid = 'pg_proc'::regclass
            join pg_proc as called on called.oid = calls.refobjid
            join pg_class as class on class.oid = users.class
            where class.reltype = called.prorettype or class.reltype = any(called.proargtypes)
            """
        )
        #expect(circles == [])
    }

    @Test("has no trigger that fires for TRUNCATE and for rows")
    func truncation() async throws {
        let psql = try await TestDatabase.fresh().psql
        let triggers = try await psql.rows(
            """
            select trigger.tgname from pg_trigger as trigger join pg_class as class on class.oid = trigger.tgrelid
            where not trigger.tgisinternal and class.relnamespace in \(Self.ours)
                and trigger.tgtype & 32 <> 0 and trigger.tgtype & 28 <> 0
            """
        )
        #expect(triggers == [])
    }

    @Test("calls nextval in no statement that Citus would send to another machine")
    func sequences() async throws {
        let psql = try await TestDatabase.fresh().psql
        let functions = try await psql.rows(
            """
            select function.proname from pg_proc as function
            where function.pronamespace = 'headroom'::regnamespace
                -- Without the declarations, in which a variable may take a number.
                and regexp_replace(function.prosrc, '^.*?\\mbegin\\M', '', 'i') ~* '\\mnextval\\s*\\('
            """
        )
        // These call it in an argument of another function, and as a whole statement.
        #expect(Set(functions) == ["apply_entitlement", "declare_one_shard", "next_generation"])
    }
}
