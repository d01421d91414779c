import Testing

@testable import HTTPServer

@Suite("Bearer tokens")
struct AuthenticatingTests {
    @Test(
        "A bearer token is what follows the scheme, whose name may be in any case",
        arguments: ["Bearer abc", "bearer abc", "BEARER   abc"]
    )
    func scheme(field: String) {
        #expect(Authenticating.bearerToken(field) == "abc")
    }

    @Test("Other schemes and empty fields hold no token", arguments: ["Basic abc", "Bearer", "Bearer ", "abc", ""])
    func others(field: String) {
        #expect(Authenticating.bearerToken(field) == nil)
    }
}
