import NIOCore
import Testing
import Usage

@testable import LineProtocol

@Suite("Permissions")
struct PermissionTests {
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

    @Test("decide about each verb, in both framings and in upper and lower case", arguments: Verb.allCases)
    func matrix(_ verb: Verb) throws {
        let line = verb.shortestRequest
        // Without AUTH in it.
        let needed = verb == .hello ? .authenticated : verb.permissions
        let array = String(decoding: arrayRequest(line.split(separator: " ").map(String.init)), as: UTF8.self)
        for framed in [line + "\n", line + "\r\n", line.lowercased() + "\n", array] {
            for scopes in PermissionTests.scopes {
                let request = try #require(decode(framed, Permissions(scopes)).first)
                guard needed.isDisjoint(with: Permissions(scopes)) else {
                    #expect(request.code == nil, "\(verb.rawValue) with \(scopes)")
                    continue
                }
                guard case .failure(let error) = request else {
                    Issue.record("\(verb.rawValue) with \(scopes): \(request)")
                    continue
                }
                #expect(error.code == .forbidden)
                for scope in needed.scopes { #expect(error.text.contains(scope.rawValue)) }
            }
            let withoutToken = try #require(decode(framed, .anonymous).first)
            #expect(withoutToken.code == (needed == .anonymous ? nil : .noAuth), "\(verb.rawValue)")
            #expect(decode(framed, .all).first?.code == nil)
        }
    }

    @Test("without a token allow HELLO only with AUTH, and hide which verbs exist")
    func beforeAuthentication() {
        #expect(decode("HELLO 3 AUTH name x\n", .anonymous).first?.code == nil)
        for line in ["HELLO", "HELLO 2", "HELLO 3 SETNAME x", "SECRET", "CONSUME \(userText) no", "PING PING PING"] {
            #expect(decode(line + "\n", .anonymous).first?.code == .noAuth, "\(line)")
        }
        // Errors in an authentication are reported.
        for line in ["AUTH", "AUTH a b c", "HELLO 3 AUTH x", "QUIT now"] {
            #expect(decode(line + "\n", .anonymous).first?.code == .badArg, "\(line)")
        }
    }

    @Test("are checked before the arguments, for each request of a pipeline")
    func pipeline() {
        let requests = decode("GRANT x y\nCONSUME \(userText)\nFORGET\nPING\n", Permissions([.chat]))
        #expect(requests.map(\.code) == [.forbidden, nil, .forbidden, nil])
        #expect(requests[1] == .command(.consume(user: user, messages: 1)))
        #expect(requests.count(where: { $0.isFatal }) == 0)
    }

    @Test("and limits change with the next request")
    func change() {
        var decoder = RequestDecoder()
        let long = "ECHO " + String(repeating: "x", count: 600) + "\n"
        decoder.permit(.anonymous, within: RequestLimits(bytesMaximum: 512, tokensMaximum: 16))
        var buffer = ByteBuffer(string: "CONSUME \(userText)\r\nAUTH x\nCONSUME \(userText)\r\n\(long)")
        #expect(decoder.next(&buffer)?.code == .noAuth)
        #expect(decoder.next(&buffer)?.code == nil)
        decoder.permit(Permissions([.chat]), within: RequestLimits())
        #expect(decoder.next(&buffer) == .command(.consume(user: user, messages: 1)))
        #expect(decoder.next(&buffer)?.code == nil)
        decoder.permit(.anonymous, within: RequestLimits(bytesMaximum: 512, tokensMaximum: 16))
        buffer.writeString("CONSUME \(userText)\r\n\(long)")
        #expect(decoder.next(&buffer)?.code == .noAuth)
        #expect(decoder.next(&buffer)?.code == .tooLong)
    }

    @Test("are denied with errors that repeat nothing of the request")
    func secrets() {
        let credentials = Credentials(name: "name", token: Secret("s3cret"))
        let command = Command.hello(version: 3, credentials: credentials)
        var dumped = ""
        dump(DecodedRequest.command(command), to: &dumped)
        for text in ["\(command)", String(reflecting: command), dumped, "\(Secret("s3cret"))"] {
            #expect(!text.contains("s3cret"))
        }
        for line in ["AUTH a s3cret c", "HELLO 3 AUTH s3cret", "HELLO 3 s3cret", "s3cret", "AUTH s3cret=1 b c"] {
            for permissions in [Permissions.anonymous, .all, Permissions([.chat])] {
                guard case .failure(let error)? = decode(line + "\n", permissions).first else {
                    Issue.record("\(line) was accepted")
                    continue
                }
                #expect(!error.text.contains("s3cret"))
            }
        }
    }
}
