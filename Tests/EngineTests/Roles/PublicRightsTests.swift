import TestSupport
import Testing

@testable import Engine

/// Checks every object of the migrations, so that a later migration cannot forget a rule.
@Suite("The catalog")
struct PublicRightsTests {
    private static let schemas = "('headroom'::regnamespace, 'public'::regnamespace)"

    /// Lines of text, or an empty list.
    private func lines(_ sql: String) async throws -> [Substring] {
        let database = try await TestDatabase.fresh()
        let text = try await database.psql.text(
            "select string_agg(line::text, E'\\n' order by line::text) from (\(sql)) as lines (line)"
        )
        return text?.split(separator: "\n") ?? []
    }

    @Test("gives PUBLIC no right on functions, tables, views, sequences, types and schemas")
    func nothingForPublic() async throws {
        let found = try await lines(
            """
            select format('%s on %s', rights.privilege_type, objects.name)
            from (
                select oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner))
                from pg_proc where pronamespace in \(PublicRightsTests.schemas)
                union all
                select oid::regclass::text, coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))
                from pg_class where relnamespace in \(PublicRightsTests.schemas) and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
                union all
                select format('%s.%s', attrelid::regclass, attname), attacl
                from pg_attribute join pg_class on pg_class.oid = attrelid
                where relnamespace in \(PublicRightsTests.schemas) and attacl is not null
                union all
                select 'type ' || oid::regtype, coalesce(typacl, acldefault('T', typowner))
                from pg_type where typnamespace in \(PublicRightsTests.schemas) and typcategory <> 'A'
                union all
                select 'schema ' || nspname, coalesce(nspacl, acldefault('n', nspowner))
                from pg_namespace where nspname = 'headroom'
            ) as objects (name, rights)
            cross join lateral aclexplode(objects.rights) as rights
            where rights.grantee = 0
            """
        )
        #expect(found == [])
    }

    @Test("has no grant options, and grants to no other roles")
    func grantees() async throws {
        let found = try await lines(
            """
            select format('%s: %s%s', objects.name, rights.grantee::regrole, case when rights.is_grantable then '*' end)
            from (
                select oid::regprocedure::text, proacl, proowner from pg_proc where pronamespace in \(PublicRightsTests.schemas)
                union all
                select oid::regclass::text, relacl, relowner from pg_class where relnamespace in \(PublicRightsTests.schemas)
                union all
                select nspname, nspacl, nspowner from pg_namespace where nspname = 'headroom'
            ) as objects (name, rights, owner)
            cross join lateral aclexplode(objects.rights) as rights
            where rights.grantee <> objects.owner and (rights.is_grantable or rights.grantee::regrole::text not in (
                'headroom_service', 'headroom_operator', 'headroom_dashboard', 'headroom_user'
            ))
            """
        )
        #expect(found == [])
    }

    @Test("fixes the search path of every SECURITY DEFINER function, all owned by headroom_owner")
    func definers() async throws {
        let definers = try await lines(
            """
            select format('%s %s %s', oid::regprocedure, proowner::regrole, proconfig::text)
            from pg_proc where prosecdef and pronamespace in \(PublicRightsTests.schemas)
            """
        )
        #expect(definers.count > 10)
        for line in definers {
            #expect(line.contains(#" headroom_owner {"search_path=pg_catalog, pg_temp""#), "\(line)")
        }
        // Every other function sets this path, or none.
        let paths = try await lines(
            """
            select oid::regprocedure from pg_proc
            where pronamespace in \(PublicRightsTests.schemas) and 'search_path=pg_catalog, pg_temp' <> all(proconfig)
            """
        )
        #expect(paths == [])
    }

    @Test("has one owner of the schema, all objects in it and ours in public; it has no members and is none")
    func owners() async throws {
        let others = try await lines(
            """
            select format('%s %s', objects.owner::regrole, objects.name)
            from (
                select nspname, nspowner from pg_namespace where nspname = 'headroom'
                union all
                select oid::regprocedure::text, proowner from pg_proc where pronamespace in \(PublicRightsTests.schemas)
                union all
                select oid::regclass::text, relowner from pg_class where relnamespace in \(PublicRightsTests.schemas)
                union all
                select 'type ' || oid::regtype, typowner from pg_type where typnamespace in \(PublicRightsTests.schemas)
            ) as objects (name, owner)
            where objects.owner <> 'headroom_owner'::regrole
            """
        )
        #expect(others == [])
        let members = try await lines(
            """
            select format('%s %s', roleid::regrole, member::regrole) from pg_auth_members
            where roleid = 'headroom_owner'::regrole or member = 'headroom_owner'::regrole
            """
        )
        #expect(members == ["headroom_service headroom_owner"])
        #expect(try await lines("select rolname from pg_roles where rolname like 'headroom\\_%' and rolcanlogin") == [])
    }

    @Test("lets the service execute every function of the schema headroom, except those of triggers")
    func service() async throws {
        let refused = try await lines(
            """
            select oid::regprocedure from pg_proc
            where pronamespace = 'headroom'::regnamespace
                and has_function_privilege('headroom_service', oid, 'EXECUTE') = (prorettype = 'trigger'::regtype)
            """
        )
        #expect(refused == [])
    }

    @Test("sets neither SECURITY DEFINER nor SET on functions that are inlined, because both prevent inlining")
    func inlined() async throws {
        let marked = try await lines(
            """
            select replace(oid::regprocedure::text, 'headroom.', '') from pg_proc
            where pronamespace in \(PublicRightsTests.schemas) and prolang = (select oid from pg_language where lanname = 'sql')
                and (prosecdef or proconfig is not null)
            """
        )
        #expect(marked == [])
    }

    @Test("runs every function with effects as headroom_owner")
    func changing() async throws {
        let found = try await lines(
            """
            select oid::regprocedure from pg_proc
            where pronamespace = 'public'::regnamespace and not prosecdef
                or pronamespace = 'headroom'::regnamespace and prorettype = 'trigger'::regtype and not prosecdef
            order by 1
            """
        )
        // The first runs in the role that deletes a subscriber, so that what it deletes is recorded.
        #expect(found == ["delete_subscriptions()", "notify_tokens_changed()"])
    }
}
