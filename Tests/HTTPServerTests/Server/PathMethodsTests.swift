import Hummingbird
import Testing

@testable import HTTPServer

@Suite("A path's methods")
struct PathMethodsTests {
    private let methods: PathMethods = {
        let router = Router(context: HTTPContext.self)
        router.get("things/{name}") { _, _ in "" }
        router.delete("things/{name}") { _, _ in "" }
        router.post("things/new") { _, _ in "" }
        router.get("things") { _, _ in "" }
        return PathMethods(router.routes)
    }()

    @Test("are those of every pattern that it fits, and HEAD wherever there is GET")
    func known() {
        #expect(methods.methods(of: "/things") == ["GET", "HEAD"])
        #expect(methods.methods(of: "/things/a") == ["DELETE", "GET", "HEAD"])
        #expect(methods.methods(of: "/things/new") == ["DELETE", "GET", "HEAD", "POST"])
        #expect(methods.methods(of: "//things/") == ["GET", "HEAD"])
    }

    @Test("are none where there is no such path")
    func unknown() {
        for path in ["/", "", "/thing", "/things/a/b", "/Things"] {
            #expect(methods.methods(of: path) == nil, "\(path)")
        }
    }
}
