import NIOCore
import TestSupport
import Testing
import Usage

@testable import LineProtocol

@Suite("Request forms")
struct RequestFormTests {
    private static let month = BillingPeriod(year: 2026, month: 11)
    private static let second = BillingPeriod(storedLabel: "2026-11.2")

    private static let longestKey = String(repeating: "k", count: 128)
    private static let keyA: MessageKey = "a"
    private static let german = SentenceOptions(language: LanguageTag("de"))
    private static let berlin = SentenceOptions(timeZone: CivilTimeZone("Europe/Berlin"))
    private static let both = SentenceOptions(language: german.language, timeZone: berlin.timeZone)

    private static let gpt5 = parts(model: "gpt-5")
    private static let member = parts(member: ben)
    private static let modelAndMember = parts(model: "openai/gpt-5:free@eu_1.0", member: ben)

    private static func parts(model: ModelName? = nil, member: UserID? = nil) -> MessageParts {
        guard let parts = MessageParts(model: model, member: member) else { preconditionFailure("no part is given") }
        return parts
    }

    private static func channel(_ user: String) -> UsageChannel {
        guard let channel = UsageChannel("usage:" + user) else { preconditionFailure("no channel of \(user)") }
        return channel
    }

    private static let forms: [(line: String, command: Command)] = [
        ("CONSUME \(userText)", .consume(user: user, messages: 1)),
        ("consume \(userText.uppercased()) 25", .consume(user: user, messages: 25)),
        ("CONSUME \(userText) 1000000", .consume(user: user, messages: 1_000_000)),
        ("CONSUME \(userText) KEY=m-1=x", .consume(user: user, messages: 1, key: "m-1=x")),
        (
            "CONSUME \(userText) 2 key=\(longestKey)",
            .consume(user: user, messages: 2, key: MessageKey(validated: longestKey))
        ),
        ("RESERVE \(userText) key=a", .reserve(user: user, messages: 1, key: keyA, ttlSeconds: 120)),
        ("RESERVE \(userText) 3 ttl=86400 key=a", .reserve(user: user, messages: 3, key: keyA, ttlSeconds: 86_400)),
        ("COMMIT \(userText) key=a", .commit(user: user, key: keyA)),
        ("COMMIT \(userText) 0 key=a", .commit(user: user, messages: 0, key: keyA)),
        ("COMMIT \(userText) 1 key=a", .commit(user: user, messages: 1, key: keyA)),
        ("RELEASE \(userText) key=a", .release(user: user, key: keyA)),
        ("CONSUME \(userText) lang=de", .withSentences(.consume(user: user, messages: 1), german)),
        ("CONSUME \(userText) 2 LANG=DE key=a", .withSentences(.consume(user: user, messages: 2, key: keyA), german)),
        (
            "RESERVE \(userText) lang=de key=a ttl=9",
            .withSentences(.reserve(user: user, messages: 1, key: keyA, ttlSeconds: 9), german)
        ),
        ("COMMIT \(userText) key=a lang=de", .withSentences(.commit(user: user, key: keyA), german)),
        ("RELEASE \(userText) key=a lang=de", .withSentences(.release(user: user, key: keyA), german)),
        ("CHECK \(userText) lang=de", .withSentences(.check(user: user, messages: 1), german)),
        ("USAGE \(userText) 2026-11 lang=de", .withSentences(.usage(user: user, period: month), german)),
        ("CHECK \(userText) TZ=Europe/Berlin", .withSentences(.check(user: user, messages: 1), berlin)),
        ("USAGE \(userText) tz=Europe/Berlin lang=de", .withSentences(.usage(user: user, period: nil), both)),
        ("RELEASE \(userText) tz=Europe/Berlin key=a", .withSentences(.release(user: user, key: keyA), berlin)),
        ("CONSUME \(userText) model=gpt-5", .withParts(.consume(user: user, messages: 1), gpt5)),
        (
            "CONSUME \(userText) 2 lang=de MEMBER=\(ben) model=openai/gpt-5:free@eu_1.0 key=a",
            .withSentences(.withParts(.consume(user: user, messages: 2, key: keyA), modelAndMember), german)
        ),
        ("CHECK \(userText) 7 member=\(ben)", .withParts(.check(user: user, messages: 7), member)),
        (
            "RESERVE \(userText) key=a model=gpt-5 ttl=9",
            .withParts(.reserve(user: user, messages: 1, key: keyA, ttlSeconds: 9), gpt5)
        ),
        ("USAGE \(userText) model=gpt-5", .withParts(.usage(user: user, period: nil), gpt5)),
        ("USAGE \(userText) 2026-11 member=\(ben)", .withParts(.usage(user: user, period: month), member)),
        ("RESETUSAGE \(userText) model=gpt-5", .withParts(.resetUsage(user: user, period: nil), gpt5)),
        ("RESETUSAGE \(userText) 2026-11 member=\(ben)", .withParts(.resetUsage(user: user, period: month), member)),
        ("RESETUSAGE \(userText) window model=gpt-5", .withParts(.closeWindow(user: user), gpt5)),
        ("CHECK \(userText)", .check(user: user, messages: 1)),
        ("ChEcK \(userText) 7", .check(user: user, messages: 7)),
        ("USAGE \(userText)", .usage(user: user, period: nil)),
        ("USAGE \(userText) 2026-11", .usage(user: user, period: month)),
        ("USAGE \(userText) 2026-11.2", .usage(user: user, period: second)),
        ("USAGE \(userText) trial", .usage(user: user, period: BillingPeriod(planNamed: "trial"))),
        ("ALLOWANCES \(userText)", .allowances(user: user, period: nil)),
        ("allowances \(userText) 2026-11.2", .allowances(user: user, period: second)),
        ("HISTORY \(userText)", .history(user: user, months: 12)),
        ("HISTORY \(userText) 1", .history(user: user, months: 1)),
        ("HISTORY \(userText) 1200", .history(user: user, months: 1_200)),
        ("REPORT", .report(period: nil)),
        ("report 2026-11", .report(period: month)),
        ("REPORT trial", .report(period: BillingPeriod(planNamed: "trial"))),
        ("REPORT open", .report(period: .open)),
        ("TOP", .top(period: nil, count: 10)),
        ("TOP 5", .top(period: nil, count: 5)),
        ("TOP 1000", .top(period: nil, count: 1_000)),
        ("TOP 2026-11.2", .top(period: second, count: 10)),
        ("TOP 2026-11", .top(period: month, count: 10)),
        ("TOP trial 1", .top(period: BillingPeriod(planNamed: "trial"), count: 1)),
        ("TOP open 1", .top(period: .open, count: 1)),
        ("TOP 2026-11 1000", .top(period: month, count: 1_000)),
        ("SUBSCRIBE usage:\(userText)", .subscribe([channel(userText)])),
        (
            "subscribe usage:\(userText.uppercased()) usage:\(userText)",
            .subscribe([channel(userText.uppercased()), channel(userText)])
        ),
        ("UNSUBSCRIBE", .unsubscribe(nil)),
        ("UNSUBSCRIBE usage:\(userText)", .unsubscribe([channel(userText)])),
        ("SETPLAN \(userText) paid", .setPlan(PlanChange(user: user, plan: "paid"))),
        ("SETPLAN \(userText) paid anchor=31", .setPlan(PlanChange(user: user, plan: "paid", anchorDay: 31))),
        ("GRANT \(userText) 50 key=a", .grant(user: user, Grant(50, key: keyA))),
        ("GRANT \(userText) 5 key=a expires=never", .grant(user: user, Grant(5, key: keyA, end: .never))),
        (
            "GRANT \(userText) 5 key=a expires=2026-11-24T09:30:00Z",
            .grant(user: user, Grant(5, key: keyA, end: .at(Instant("2026-11-24T09:30:00Z")!)))
        ),
        ("GRANT \(userText) 1 reason=a=b key=a", .grant(user: user, Grant(1, key: keyA, reason: "a=b"))),
        ("FORGET \(userText)", .forget(user: user)),
        ("RESETUSAGE \(userText)", .resetUsage(user: user, period: nil)),
        ("RESETUSAGE \(userText) 2026-11", .resetUsage(user: user, period: month)),
        ("RESETUSAGE \(userText) window", .closeWindow(user: user)),
        ("PING", .ping(text: nil)),
        ("PING a=b", .ping(text: "a=b")),
        ("ECHO hallöchen", .echo(text: "hallöchen")),
        ("HELP", .help(verb: nil)),
        ("HELP setplan", .help(verb: .setPlan)),
        ("INFO", .info),
        ("AUTH s3cret", .authenticate(Credentials(name: nil, token: Secret("s3cret")))),
        ("auth default s3cret", .authenticate(Credentials(name: nil, token: Secret("s3cret")))),
        ("AUTH key=a s=3=cret=", .authenticate(Credentials(name: "key=a", token: Secret("s=3=cret=")))),
        ("QUIT", .quit),
        ("HELLO", .hello(version: nil)),
        ("HELLO 2", .hello(version: 2)),
        ("HELLO 3 SETNAME backend", .hello(version: 3, clientName: "backend")),
        ("HELLO 3 AUTH app s3cret", .hello(version: 3, credentials: Credentials(name: "app", token: Secret("s3cret")))),
        (
            "HELLO 2 setname b auth default s=c",
            .hello(version: 2, credentials: Credentials(name: nil, token: Secret("s=c")), clientName: "b")
        ),
        ("INFO replication", .info),
        ("CLIENT ID", .client(.id)),
        ("CLIENT SETNAME a=b", .client(.setName("a=b"))),
        ("client getname", .client(.name)),
        ("CLIENT SETINFO LIB-NAME go-redis(,go1.24)", .client(.setLibraryName("go-redis(,go1.24)"))),
        ("CLIENT SETINFO lib-ver 9.1", .client(.setLibraryVersion("9.1"))),
        ("CLIENT INFO", .client(.info)),
        ("CLIENT LIST TYPE normal", .client(.list)),
        ("CLIENT NO-EVICT ON", .client(.accepted)),
        ("CLIENT NO-TOUCH OFF", .client(.accepted)),
        ("COMMAND", .command(.descriptions)),
        ("COMMAND DOCS PING", .command(.descriptions)),
        ("COMMAND INFO get", .command(.descriptions)),
        ("COMMAND COUNT", .command(.count)),
        ("command list", .command(.names)),
        ("SELECT 0", .select),
    ]

    @Test("Every request form is decoded, as a line, as an array, and as a client encodes it", arguments: forms)
    func form(line: String, command: Command) {
        let array = arrayRequest(line.split(separator: " ").map(String.init))
        #expect(decode(line + "\n") == [.command(command)])
        #expect(decode(line + "\r\n") == [.command(command)])
        #expect(decode(array) == [.command(command)])
        #expect(decodeByteByByte(array) == [.command(command)])
        #expect(decode(encoded(command)) == [.command(command)])
    }

    @Test("Every verb has a request form in the table above")
    func everyVerbIsCovered() {
        let verbs = Set(RequestFormTests.forms.map { $0.line.prefix { $0 != " " }.uppercased() })
        #expect(verbs == Set(Verb.allCases.map(\.rawValue)))
    }

    @Test("SETPLAN accepts its options in any order, in upper and lower case")
    func planChange() {
        let change = PlanChange(
            user: user,
            plan: "paid",
            state: .gracePeriod,
            startedAt: Instant("2026-11-01"),
            expiresAt: Instant("2026-12-01T09:30:00Z"),
            graceUntil: Instant("2026-12-17"),
            anchorDay: 1
        )
        let options = [
            "STATE=grace_period", "started=2026-11-01", "Expires=2026-12-01T10:30:00+01:00", "grace_until=2026-12-17",
            "anchor=1",
        ]
        for shift in 0..<options.count {
            let rotated = options[shift...] + options[..<shift]
            #expect(
                decode("SETPLAN \(userText) paid \(rotated.joined(separator: " "))\n") == [.command(.setPlan(change))]
            )
        }
    }

    @Test("The id of a member has the form of a user's id, with a namespace too")
    func members() throws {
        let namespace = UserNamespace(user)
        let name = "user_2NNEqL2nrIRdJ194ndJqAHwEfxC"
        let member = try #require(UserID(name, in: namespace))
        func decode(_ line: String, in namespace: UserNamespace?) -> DecodedRequest? {
            var decoder = RequestDecoder(namespace: namespace)
            var buffer = ByteBuffer(string: line)
            return decoder.next(&buffer)
        }
        let line = "CHECK \(userText) member=\(name)\n"
        let command = Command.check(user: user, messages: 1).inParts(MessageParts(member: member))
        #expect(decode(line, in: namespace) == .command(command))
        let uuid = "UUID: 8-4-4-4-12 hexadecimal digits; other ids need the setting user-namespace"
        #expect(decode(line, in: nil) == .failure(.badArgument("member= must be a \(uuid)")))
        let model = "model= must be 1 to 64 letters, digits and . _ : / @ -"
        #expect(decode("CHECK \(userText) model=gpt-5*\n", in: nil) == .failure(.badArgument(model)))
    }

    @Test("Whether a request was an array is reported, however the network splits it")
    func framing() {
        var decoder = RequestDecoder()
        var buffer = ByteBuffer()
        var arrays: [Bool] = []
        for byte in Array("INFO\n".utf8) + arrayRequest(["INFO"]) + Array("\nPING\n".utf8)
            + arrayRequest(["ECHO", "x"])
        {
            buffer.writeBytes([byte])
            if decoder.next(&buffer) != nil { arrays.append(decoder.wasArray) }
        }
        #expect(arrays == [false, true, false, true])
    }

    @Test("Runs of spaces and tabs separate tokens, also at both ends")
    func separators() {
        #expect(decode(" \t CONSUME\t \(userText)  3 \t\r\n") == [.command(.consume(user: user, messages: 3))])
    }

    @Test("An array's text may have spaces, quotes and a line separator, or be empty")
    func arrayText() {
        for text in ["two words", "\"quoted\" \\", "a\u{2028}b", "\u{FEFF}", "é🙂", ""] {
            #expect(decode(arrayRequest(["ECHO", text])) == [.command(.echo(text: EchoedBytes(text)))])
            #expect(decode(arrayRequest(["PING", text])) == [.command(.ping(text: EchoedBytes(text)))])
        }
    }

    @Test("ECHO and PING of an array take any bytes, and a client encodes them so")
    func anyBytes() {
        let bytes = EchoedBytes(UInt8.min...UInt8.max)
        for (verb, command) in [("ECHO", Command.echo(text: bytes)), ("PING", .ping(text: bytes))] {
            let request = Array("*2\r\n$4\r\n\(verb)\r\n$256\r\n".utf8) + bytes.bytes + Array("\r\n".utf8)
            #expect(decode(request) == [.command(command)])
            #expect(decodeByteByByte(request) == [.command(command)])
            #expect(decode(encoded(command)) == [.command(command)])
        }
    }

    @Test(
        "A subcommand that the service does not know is an error: OK would promise what never comes",
        arguments: [
            "CLIENT", "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none", "CLIENT UNBLOCK 7",
            "CLIENT TRACKING ON OPTIN", "CLIENT REPLY OFF", "CLIENT CACHING YES", "CLIENT KILL ID 7", "CLIENT PAUSE 1",
            "CLIENT ID 7", "CLIENT SETINFO LIB-SIZE 7", "CLIENT SETINFO LIB-NAME", "CLIENT NO-EVICT", "COMMAND GETKEYS",
        ]
    )
    func unknownSubcommands(line: String) { #expect(decode(line + "\n").map(\.code) == [.err]) }

    @Test("A client's name has no spaces, as in Redis", arguments: ["a b", "a\u{E9}"])
    func clientNames(name: String) {
        #expect(decode(arrayRequest(["CLIENT", "SETNAME", name])).map(\.code) == [.err])
        #expect(decode(arrayRequest(["HELLO", "3", "SETNAME", name])).map(\.code) == [.err])
    }

    @Test("HELLO with a version that does not exist is -NOPROTO", arguments: [0, 1, 4, 99])
    func versions(version: Int) { #expect(decode("HELLO \(version) SETNAME x\n").map(\.code) == [.noProto]) }

    @Test("Pipelined requests are decoded in order, in either framing")
    func pipelined() {
        let bytes = Array("PING 1\n\r\nPING 2\r\n".utf8) + arrayRequest(["PING", "3"]) + Array("*0\r\nPING 4\n".utf8)
        #expect(decode(bytes) == (1...4).map { .command(.ping(text: EchoedBytes("\($0)"))) })
    }

    @Test("A line without its end is not a request")
    func unfinished() {
        #expect(decode("CONSUME \(userText) 10").isEmpty)
        #expect(decode("CONSUME \(userText) 10\r").isEmpty)
    }
}
