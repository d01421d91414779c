import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("What a peer may ask")
struct PermissionTests {
    private enum Needed: Equatable {
        case nothing
        case token
        case oneOf(Set<Scope>)
    }

    /// Written out, so that a verb that is added has to be placed here as well.
    private static func needed(_ verb: Verb) -> Needed {
        switch verb {
        case .consume, .check, .reserve, .commit, .release: .oneOf([.chat])
        case .usage: .oneOf([.chat, .dashboard, .operator])
        case .history, .report, .top, .subscribe, .unsubscribe: .oneOf([.dashboard, .operator])
        case .setPlan, .grant, .resetUsage, .forget: .oneOf([.operator])
        case .ping, .echo, .help, .info, .client, .command, .select: .token
        case .auth, .quit: .nothing
        // Without AUTH in it.
        case .hello: .token
        }
    }

    private static func request(_ verb: Verb) -> String {
        switch verb {
        case .consume, .check, .usage, .history, .resetUsage, .forget: "\(verb.rawValue) \(userText)"
        case .reserve, .commit, .release: "\(verb.rawValue) \(userText) key=k"
        case .setPlan: "SETPLAN \(userText) paid"
        case .grant: "GRANT \(userText) 5 key=k"
        case .subscribe: "SUBSCRIBE usage:\(userText)"
        case .echo: "ECHO x"
        case .select: "SELECT 0"
        case .auth: "AUTH x"
        case .report, .top, .unsubscribe, .ping, .help, .info, .client, .command, .quit, .hello: verb.rawValue
        }
    }

    private func decode(_ text: String, _ permissions: Permissions) -> [DecodedRequest] {
        var decoder = RequestDecoder()
        decoder.permit(permissions, within: RequestLimits())
        var buffer = ByteBuffer(string: text)
        var requests: [DecodedRequest] = []
        while let request = decoder.next(&buffer) { requests.append(request) }
        return requests
    }

    /// Every combination of scopes that a token may have.
    private static let scopes: [Set<Scope>] = (1..<8).map { bits in
        Set(Scope.allCases.enumerated().filter { bits >> $0.offset & 1 == 1 }.map(\.element))
    }

    @Test("is by its token's scopes, verb by verb, in both framings and in either case", arguments: Verb.allCases)
    func matrix(_ verb: Verb) throws {
        let line = PermissionTests.request(verb)
        let array = String(decoding: arrayRequest(line.split(separator: " ").map(String.init)), as: UTF8.self)
        for framed in [line + "\n", line + "\r\n", line.lowercased() + "\n", array] {
            for scopes in PermissionTests.scopes {
                let request = try #require(decode(framed, Permissions(scopes)).first)
                guard case .oneOf(let needed) = PermissionTests.needed(verb), needed.isDisjoint(with: scopes) else {
                    #expect(request.code == nil, "\(verb.rawValue) with \(scopes)")
                    continue
                }
                guard case .failure(let error) = request else {
                    Issue.record("\(verb.rawValue) with \(scopes): \(request)")
                    continue
                }
                #expect(error.code == .forbidden)
                for scope in needed { #expect(error.text.contains(scope.rawValue)) }
            }
            let unknown = try #require(decode(framed, .nothing).first)
            #expect(unknown.code == (PermissionTests.needed(verb) == .nothing ? nil : .noAuth), "\(verb.rawValue)")
            #expect(decode(framed, .everything).first?.code == nil)
        }
    }

    @Test("without a token is HELLO only with AUTH, and no verb that does not exist")
    func beforeAuthentication() {
        #expect(decode("HELLO 3 AUTH name x\n", .nothing).first?.code == nil)
        for line in ["HELLO", "HELLO 2", "HELLO 3 SETNAME x", "SECRET", "CONSUME \(userText) no", "PING PING PING"] {
            #expect(decode(line + "\n", .nothing).first?.code == .noAuth, "\(line)")
        }
        // What is wrong with saying who one is, is said.
        for line in ["AUTH", "AUTH a b c", "HELLO 3 AUTH x", "HELLO 7 AUTH a b", "QUIT now"] {
            #expect(decode(line + "\n", .nothing).first?.code == .badArg, "\(line)")
        }
    }

    @Test("is looked at before the arguments, and harms no neighbour in the pipeline")
    func neighbours() {
        let requests = decode("GRANT x y\nCONSUME \(userText)\nFORGET\nPING\n", Permissions([.chat]))
        #expect(requests.map(\.code) == [.forbidden, nil, .forbidden, nil])
        #expect(requests[1] == .command(.consume(user: user, messages: 1)))
        #expect(requests.count(where: { $0.isFatal }) == 0)
    }

    @Test("changes from the next request on, and so does its size")
    func change() {
        var decoder = RequestDecoder()
        let long = "ECHO " + String(repeating: "x", count: 600) + "\n"
        decoder.permit(.nothing, within: RequestLimits(requestSizeBytes: 512, tokens: 16))
        var buffer = ByteBuffer(string: "CONSUME \(userText)\r\nAUTH x\nCONSUME \(userText)\r\n\(long)")
        #expect(decoder.next(&buffer)?.code == .noAuth)
        #expect(decoder.next(&buffer)?.code == nil)
        decoder.permit(Permissions([.chat]), within: RequestLimits())
        #expect(decoder.next(&buffer) == .command(.consume(user: user, messages: 1)))
        #expect(decoder.next(&buffer)?.code == nil)
        decoder.permit(.nothing, within: RequestLimits(requestSizeBytes: 512, tokens: 16))
        buffer.writeString("CONSUME \(userText)\r\n\(long)")
        #expect(decoder.next(&buffer)?.code == .noAuth)
        #expect(decoder.next(&buffer)?.code == .tooLong)
    }

    @Test("is told in words that repeat nothing of the request")
    func secrets() {
        let credentials = Credentials(name: "name", token: Secret("s3cret"))
        let command = Command.hello(version: 3, credentials: credentials)
        var dumped = ""
        dump(DecodedRequest.command(command), to: &dumped)
        for text in ["\(command)", String(reflecting: command), dumped, "\(Secret("s3cret"))"] {
            #expect(!text.contains("s3cret"))
        }
        for line in ["AUTH a s3cret c", "HELLO 3 AUTH s3cret", "HELLO 3 s3cret", "s3cret", "AUTH s3cret=1 b c"] {
            for permissions in [Permissions.nothing, .everything, Permissions([.chat])] {
                guard case .failure(let error)? = decode(line + "\n", permissions).first else {
                    Issue.record("\(line) was taken")
                    continue
                }
                #expect(!error.text.contains("s3cret"))
            }
        }
    }
}
