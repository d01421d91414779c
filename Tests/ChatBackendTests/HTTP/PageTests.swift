import Foundation
import HeadroomClient
import TestSupport
import Testing

@testable import chat_backend

@Suite("The page is served", .timeLimit(.minutes(10)))
struct PageTests {
    private static let directory = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Examples/ChatBackend/Page")

    @Test("Each file of the page is in the program, byte for byte")
    func embedded() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path).filter {
            !$0.hasPrefix(".")
        }
        #expect(Set(names) == Set(PageFiles.contents.keys))
        for (name, bytes) in PageFiles.contents {
            #expect(try Data(contentsOf: Self.directory.appending(path: name)) == Data(bytes), "\(name)")
        }
    }

    @Test("Pages and their files open, say what browsers may do with them, and are not sent twice")
    func opened() async throws {
        let service = try await ServiceProcess.start()
        try await RunningChat.with(service) { chat in
            let paths =
                ["/", "/chat/7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"] + PageFiles.contents.keys.map { "/assets/\($0)" }
            for path in paths {
                let response = try await chat.request("GET", path)
                #expect(response.status == .ok, "\(path)")
                #expect(response.headers["Content-Security-Policy"].first == Guarding.contentSecurityPolicy)
                #expect(response.headers["X-Content-Type-Options"].first == "nosniff")
                #expect(response.headers["Referrer-Policy"].first == "no-referrer")
                let type = try #require(response.headers["Content-Type"].first)
                #expect(type.hasPrefix("text/") && type.hasSuffix("charset=utf-8") || type == "image/svg+xml")
                let body = try await response.bytes()
                let head = try await chat.request("HEAD", path)
                #expect(head.status == .ok)
                #expect(try await head.bytes().isEmpty)
                #expect(path == "/" || head.headers["Content-Length"].first == "\(body.count)")
                let tag = try #require(response.headers["ETag"].first)
                for known in [tag, "W/\(tag)", "\"other\", \(tag)"] where path != "/" {
                    let again = try await chat.request("GET", path, headers: [("If-None-Match", known)])
                    #expect(again.status == .notModified, "\(path) \(known)")
                    #expect(try await again.bytes().isEmpty)
                }
            }
        }
    }

    @Test("Files can come from a folder while they are changed, and nothing from beside it")
    func folder() throws {
        let files = PageFiles(directory: Self.directory.path)
        #expect(files.asset("index.html")?.mediaType == "text/html; charset=utf-8")
        for name in ["../README.md", "..", ".", "", "Page/index.html", ".hidden", "index.html\0"] {
            #expect(files.asset(name) == nil, "\(name)")
        }
    }

    @Test("The first page names who can be chosen, and a name is no markup")
    func people() throws {
        let user = UserID.random
        let person = Person(user: user, name: "<b>Ann</b>", about: "\"quoted\" & more")
        let text = String(decoding: PeoplePage(people: [person]).asset.data, as: UTF8.self)
        #expect(text.contains("href=\"/chat/\(user)\""))
        #expect(text.contains("&lt;b&gt;Ann&lt;/b&gt;") && text.contains("&quot;quoted&quot; &amp; more"))
        #expect(text.contains("Somebody new"))
    }
}
