import Usage

@testable import LineProtocol

extension BadInput {
    private static let setPlan = "SETPLAN \(userText) paid"

    /// Requests with an unknown verb, or with a missing, surplus, repeated, unknown or malformed field. The errors must
    /// not echo the word "secret".
    static let fields: [BadInput] =
        // Unknown verbs.
        ["secret", "CONSUMEX \(userText)", "C", "$4", "'; DROP TABLE message_usage", "%s%n", "a=b", "CONSUME=1"]
        .map { .line($0, .err) }
        // Fields that are empty, too long or contain a space.
        + [
            BadInput("empty verb", "*1\r\n$0\r\n\r\n", .failure(.err)),
            BadInput("verb and space", arrayRequest(["PING "]), .failure(.err)),
            BadInput("verb of 64 letters", String(repeating: "A", count: 64) + "\n", .failure(.err)),
            BadInput("user and space", arrayRequest(["CONSUME", userText + " "]), .failure(.badArg)),
            BadInput("empty user", arrayRequest(["CONSUME", ""]), .failure(.badArg)),
            BadInput("empty period", arrayRequest(["USAGE", userText, ""]), .failure(.badArg)),
        ]
        // Too few or too many fields.
        + [
            "CONSUME", "CHECK", "USAGE", "HISTORY", "SETPLAN", "SETPLAN \(userText)", "RESETUSAGE", "ECHO", "SELECT",
            "CONSUME \(userText) 1 1", "CHECK \(userText) 1 1", "USAGE \(userText) 2026-11 1", "PING a b",
            "HISTORY \(userText) 1 1", "SETPLAN \(userText) paid paid", "RESETUSAGE \(userText) 2026-11 1",
            "ECHO a b", "REPORT 2026-11 2026-12", "TOP 2026-11 5 5", "TOP 5 2026-11", "TOP 5 5", "HELP PING PING",
            "QUIT now", "SELECT 0 0",
        ].map { .line($0) }
        // Malformed users.
        + [
            "secret", "'; DROP TABLE message_usage; --", "{\(userText)}", "urn:uuid:\(userText)",
            String(userText.dropLast()), userText + "0", String(userText.filter { $0 != "-" }),
            userText.replacing("-", with: "_"), String(repeating: "g", count: 36), "%s", "$1",
        ].map { .line("CONSUME \($0)") }
        // Options of CONSUME, RESERVE, COMMIT and RELEASE.
        + [
            "CONSUME \(userText) key=", "CONSUME \(userText) key=a key=a", "CONSUME \(userText) ttl=5",
            "RESERVE \(userText)", "RESERVE \(userText) key=a ttl=0", "RESERVE \(userText) key=a ttl=86401",
            "RESERVE \(userText) 0 key=a", "COMMIT \(userText)", "COMMIT \(userText) 1000001 key=a",
            "COMMIT \(userText) -1 key=a", "COMMIT \(userText) 1 2 key=a",
            "COMMIT \(userText) key=a ttl=5", "RELEASE \(userText) key=\(String(repeating: "ä", count: 65))",
            "CONSUME \(userText) key=\(String(repeating: "k", count: 129))",
            "CONSUME \(userText) secret=1", "CONSUME \(userText) =1", "CONSUME \(userText) =", "HELP a=b",
            "CONSUME user=\(userText)", "CONSUME key=1 \(userText)",
        ].map { .line($0) }
        // Models and members.
        + [
            "model=", "model=gpt*", "model=gpt,5", "model=modèle", "model=\(String(repeating: "m", count: 65))",
            "model=a model=b", "member=", "member=secret", "member=\(userText)0",
            "member=\(userText) MEMBER=\(userText)",
        ].map { .line("CONSUME \(userText) \($0)") }
        + [
            "COMMIT \(userText) key=a model=m", "RELEASE \(userText) key=a member=\(userText)",
            "HISTORY \(userText) model=m", "GRANT \(userText) 5 key=a model=m", "FORGET \(userText) member=\(userText)",
        ].map { .line($0) }
        // GRANT and FORGET.
        + [
            "GRANT", "GRANT \(userText)", "GRANT \(userText) 5", "GRANT \(userText) key=a",
            "GRANT \(userText) 5 5 key=a", "GRANT \(userText) 0 key=a", "GRANT \(userText) -5 key=a",
            "GRANT \(userText) 1000001 key=a", "GRANT \(userText) 5 key=", "GRANT \(userText) 5 key=a reason=",
            "GRANT \(userText) 5 key=a ttl=1",
            "GRANT \(userText) 5 key=a reason=b reason=c", "GRANT secret 5 key=a", "FORGET", "FORGET secret",
            "FORGET \(userText) 1", "FORGET \(userText) key=a",
        ].map { .line($0) }
        // Malformed billing periods.
        + [
            "2026-13", "2026-00", "2026-1", "26-11", "2026-11-31", "2026-W54", "2026-w47", "infinity!", "-", "Trial",
            "２０２６-11", "2026-11.1", "2026-11.02", "2026-11.1000", "2026-11-22.2", "trial.2",
        ]
        .flatMap {
            [
                .line("USAGE \(userText) \($0)"), .line("RESETUSAGE \(userText) \($0)"), .line("REPORT \($0)"),
                .line("TOP \($0)"), .line("TOP \($0) 5"),
            ]
        }
        // Malformed numbers of users for TOP.
        + ["0", "1001", "01", "+5", "-5", "1e3", "0x5", "5.0", "18446744073709551616", "５"]
        .flatMap { [.line("TOP \($0)"), .line("TOP 2026-11 \($0)")] }
        // Channels.
        + ["SUBSCRIBE", "SUBSCRIBE usage:\(userText) secret"].map { .line($0) }
        + [
            userText, "usage", "usage:", "usage: \(userText)", "USAGE:\(userText)", "usage:\(userText)0",
            "usage:secret", "usage:*", "usage::\(userText)", "__keyspace@0__:x", "usage=\(userText)",
        ].flatMap { [.line("SUBSCRIBE \($0)"), .line("UNSUBSCRIBE \($0)")] }
        // Arguments written as options, and a number instead of a period.
        + ["REPORT period=2026-11", "TOP n=5", "REPORT 5"].map { .line($0) }
        // Malformed plan names, then options of SETPLAN.
        + ["Paid", "1paid", "pa-id", "_paid", String(repeating: "p", count: 33), "2026-11", "'; DROP"]
        .map { .line("SETPLAN \(userText) \($0)") }
        + [
            "state=", "state=secret", "state=Active", "state=gracePeriod", "started=infinity", "started=",
            "started=2026-02-29", "expires=2026-13-01", "expires=2026-11-24T09:30:00", "grace_until=tomorrow",
            "grace_until=24.11.2026", "expires=9999-99-99", "started=1999-12-31", "anchor=0", "anchor=32", "anchor=-1",
            "anchor=01",
            "anchor=", "anchor=31.0", "anchor=1 anchor=1", "anchor=1 ANCHOR=2", "state=active anchor=1 state=active",
            "state=active paid", "key=1", "state", "=", "state==active",
        ].map { .line("\(setPlan) \($0)") }
        // The commands that Redis clients send when they connect.
        + [
            "HELP secret", "SELECT 1", "SELECT -1", "SELECT zero", "SELECT 00", "HELLO two",
            "HELLO 03", "HELLO 3 AUTH secret", "HELLO 3 SETNAME n AUTH name", "HELLO 3 auth",
            "HELLO 3 SETNAME", "HELLO 3 secret", "HELLO SETNAME n", "HELLO AUTH name secret",
            "HELLO 3 AUTH name secret AUTH name secret", "HELLO 3 AUTH name secret secret",
            "AUTH", "AUTH name secret secret",
        ].map { .line($0) }
        + ["HELLO 1", "HELLO 4", "HELLO 4 AUTH name secret"].map { .line($0, .noProto) }
        + ["CLIENT", "CLIENT TRACKING ON", "CLIENT UNBLOCK 1", "COMMAND GETKEYS"].map { .line($0, .err) }
}
