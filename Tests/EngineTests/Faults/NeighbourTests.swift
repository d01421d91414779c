import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("An error of one user", .serialized)
struct NeighbourTests {
    private let users = (0..<16).map { user($0) }

    private func expectCounted(_ outcomes: [Outcome], used: Int, except troubled: Set<Int>) {
        for (index, outcome) in outcomes.enumerated() where !troubled.contains(index) {
            #expect(outcome.isAllowed, "user \(index): \(outcome)")
            #expect(outcome.answer?.snapshot.used == used)
        }
    }

    @Test("whose row the database refuses fails only this user's requests", arguments: [false, true])
    func badRow(isKnown: Bool) async throws {
        try await EngineHarness.serving(.fresh(), lanes: 1) { database, harness in
            if isKnown { _ = try await harness.execute(users.map { ($0, .consume(1)) }) }
            try await database.psql.execute(
                """
                create function headroom.test_refuse() returns trigger language plpgsql as
                    $$ begin raise exception 'not this one'; end $$;
                create trigger test_refuse before insert or update on message_usage for each row
                    when (new.user_id in ('\(user(5))', '\(user(11))')) execute function headroom.test_refuse();
                """
            )
            let outcomes = try await harness.execute(users.map { ($0, .consume(2)) })
            expectCounted(outcomes, used: isKnown ? 3 : 2, except: [5, 11])
            for index in [5, 11] {
                #expect(outcomes[index].failure?.code == .internal)
                let message = outcomes[index].failure?.message
                #expect(message?.contains("not this one") == false, "what the database says is logged only")
            }
            #expect(harness.log.events.contains { $0.metadata.contains("not this one") })
            try await database.psql.execute("drop trigger test_refuse on message_usage")
            let after = try await harness.execute(users.map { ($0, .consume(1)) })
            expectCounted(after, used: isKnown ? 4 : 3, except: [5, 11])
            #expect(after[5].answer?.snapshot.used == (isKnown ? 2 : 1))
        }
    }

    @Test("whose row cannot be read does not fail other subscriptions, and is logged once")
    func unreadableRow() async throws {
        let database = try await TestDatabase.fresh()
        let harness = EngineHarness(database.conninfo, lanes: 1)
        let ada = user(5)
        try await harness.running {
            try await database.psql.execute(
                """
                alter function headroom.entitlement(uuid, timestamptz, text) rename to sound_entitlement;
                create function headroom.entitlement(p_user_id uuid, p_at timestamptz, p_unknown_users_policy text)
                    returns headroom.entitlement
                    language plpgsql stable as
                $$
                begin
                    if p_user_id = '\(ada)' then
                        raise exception 'planted' using errcode = 'datetime_field_overflow';
                    end if;
                    return headroom.sound_entitlement(p_user_id, p_at, p_unknown_users_policy);
                end
                $$;
                grant execute on function headroom.entitlement, headroom.sound_entitlement to headroom_service;
                """
            )
            for round in 0..<2 {
                let subscribed = try await harness.outcomes(of: [
                    harness.subscribe([user(1)], connection: 3 * round),
                    harness.subscribe([ada], connection: 3 * round + 1),
                    harness.subscribe([user(2)], connection: 3 * round + 2),
                ])
                #expect(subscribed[0] == .subscribed && subscribed[2] == .subscribed)
                #expect(subscribed[1].failure?.code == .internal)
                #expect(subscribed[1].failure?.message.contains("cannot be read") == true)
            }
            #expect(harness.log.count(of: "a row in the database cannot be read") == 1)
        }
    }
}
