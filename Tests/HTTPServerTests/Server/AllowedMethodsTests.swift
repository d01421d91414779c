import Hummingbird
import Testing

@testable import HTTPServer

@Suite("Allowed methods")
struct AllowedMethodsTests {
    private let methods: AllowedMethods = {
        let router = Router(context: HTTPContext.self)
        router.get("things/{name}") { _, _ in "" }
        router.delete("things/{name}") { _, _ in "" }
        router.post("things/new") { _, _ in "" }
        router.get("things") { _, _ in "" }
        return AllowedMethods(router.routes)
    }()

    @Test("a path has the methods of all matching patterns, and HEAD with GET")
    func known() {
        #expect(methods.methods(of: "/things") == ["GET", "HEAD"])
        #expect(methods.methods(of: "/things/a") == ["DELETE", "GET", "HEAD"])
        #expect(methods.methods(of: "/things/new") == ["DELETE", "GET", "HEAD", "POST"])
        #expect(methods.methods(of: "//things/") == ["GET", "HEAD"])
    }

    @Test("an unknown path has no methods")
    func unknown() {
        for path in ["/", "", "/thing", "/things/a/b", "/Things"] {
            #expect(methods.methods(of: path) == nil, "\(path)")
        }
    }
}
