import AsyncHTTPClient
import Foundation
import HeadroomClient
import NIOCore
import TestSupport
import Testing

@testable import chat_backend

@Suite("What comes is checked, and what is wrong is said", .timeLimit(.minutes(10)))
struct RequestTests {
    private struct Wrong {
        var method = "POST"
        var path: String
        var body: String?
        var headers: [(String, String)] = []
        var status: UInt
        var code: String
    }

    private static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    private static let id = "0b6a3f1f-3a51-4a7e-9d55-7f1c0a527c11"

    private static var wrong: [Wrong] {
        let messages = "/users/\(user)/messages"
        let long = String(repeating: "é", count: MessageRoutes.textCharactersMaximum + 1)
        let accented = "e" + String(repeating: "\u{301}", count: MessageRoutes.textBytesMaximum / 2)
        let huge = String(repeating: "x", count: BodyDecoder.bytesMaximum)
        let right = #"{"id": "\#(id)", "text": "Hello"}"#
        return [
            Wrong(path: "/users/nobody/messages", body: right, status: 404, code: "NOTFOUND"),
            Wrong(path: messages, body: "{", status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: "", status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "\#(id)"}"#, status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "one", "text": "Hello"}"#, status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "\#(id)", "text": " \n "}"#, status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "\#(id)", "text": "\#(long)"}"#, status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "\#(id)", "text": "\#(accented)"}"#, status: 400, code: "BADREQUEST"),
            Wrong(path: messages, body: #"{"id": "\#(id)", "text": "\#(huge)"}"#, status: 413, code: "TOOLONG"),
            Wrong(path: messages, body: right, headers: [("Content-Type", "text/plain")], status: 415, code: "BADTYPE"),
            Wrong(
                path: messages,
                body: right,
                headers: [("Sec-Fetch-Site", "cross-site")],
                status: 403,
                code: "FORBIDDEN"
            ),
            Wrong(path: messages, body: right, headers: [("Host", "evil.example")], status: 421, code: "BADHOST"),
            Wrong(method: "GET", path: "/users/nobody", status: 404, code: "NOTFOUND"),
            Wrong(method: "GET", path: "/users/nobody/changes", status: 404, code: "NOTFOUND"),
            Wrong(method: "GET", path: "/chat/nobody", status: 404, code: "NOTFOUND"),
            Wrong(method: "GET", path: "/assets/secret.js", status: 404, code: "NOTFOUND"),
            Wrong(method: "GET", path: "/nothing", status: 404, code: "NOTFOUND"),
        ]
    }

    @Test("Each mistake has its status, a code and words, and asks no model")
    func mistakes() async throws {
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            for wrong in Self.wrong {
                let response = try await chat.request(wrong.method, wrong.path, wrong.body, headers: wrong.headers)
                #expect(response.status.code == wrong.status, "\(wrong.path) \(wrong.body?.prefix(60) ?? "")")
                let problem = try await response.problem()
                #expect(problem.code == wrong.code && problem.message.count > 10, "\(wrong.path) \(problem)")
                // Nothing of what was sent comes back.
                #expect(!problem.message.contains("evil") && !problem.message.contains("xxx"))
            }
            #expect(chat.model.questions.isEmpty)
        }
    }

    @Test("A person who opens a wrong address gets a page with a way on, a program JSON")
    func pages() async throws {
        let service = try await ServiceProcess.start()
        let browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]
        try await RunningChat.with(service) { chat in
            for path in ["/nothing", "/chat/nobody", "/assets/secret.js", "/users/nobody"] {
                let response = try await chat.request("GET", path, headers: browser)
                #expect(response.status == .notFound)
                #expect(response.headers["Content-Type"] == ["text/html; charset=utf-8"])
                #expect(response.headers["Content-Security-Policy"].first == Guarding.contentSecurityPolicy)
                let text = try await response.text()
                #expect(text.contains("I can’t find that page") && text.contains("href=\"/\""), "\(path)")
            }
            let plain = try await chat.request("GET", "/nothing", headers: [("Accept", "*/*")])
            #expect(try await plain.problem().code == "NOTFOUND")
            let posted = try await chat.request("POST", "/users/nobody/messages", "{}", headers: browser)
            #expect(try await posted.problem().code == "NOTFOUND")
        }
    }

    @Test("A body without an end, and one that tells no length, are cut at the size")
    func endless() async throws {
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            var request = HTTPClientRequest(url: chat.address + "/users/\(Self.user)/messages")
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            let (pieces, more) = AsyncStream.makeStream(of: ByteBuffer.self)
            for _ in 0..<8 { more.yield(ByteBuffer(repeating: UInt8(ascii: "x"), count: 8_192)) }
            // There is no end of it: the answer comes all the same.
            request.body = .stream(pieces, length: .unknown)
            let response = try await HTTPClient.shared.execute(request, timeout: TimeAmount(waitLimit))
            #expect(response.status.code == 413)
            #expect(try await response.problem().code == "TOOLONG")
            more.finish()
        }
    }

    @Test("Names that were set are the chat's own, and so are addresses and localhost")
    func hosts() {
        let check = HostCheck(names: ["chat.example"])
        for host in ["chat.example", "CHAT.example:8080", "127.0.0.1:80", "[::1]:8080", "localhost:1", "a.localhost"] {
            #expect(check.isOurs(host), "\(host)")
        }
        for host in ["evil.example", "chat.example.evil.example", "127.0.0.1.evil.example", "", "[::1"] as [String?] + [
            nil
        ] {
            #expect(!check.isOurs(host), "\(host ?? "none")")
        }
    }

    @Test("A chat starts also when nobody listens at its Headroom, and says that it cannot ask")
    func withoutHeadroom() async throws {
        let service = try await ServiceProcess.start()
        try await service.crash()
        try await RunningChat.with(service, patience: .init()) { chat in
            let page = try await chat.page(.random)
            #expect(page["usage"] is NSNull && page.has("offline") && page["can_subscribe"] as? Bool == false)
        }
    }
}
