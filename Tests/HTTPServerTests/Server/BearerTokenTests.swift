import Testing

@testable import HTTPServer

@Suite("Bearer tokens")
struct BearerTokenTests {
    @Test(
        "A bearer token follows the scheme in upper or lower case",
        arguments: ["Bearer abc", "bearer abc", "BEARER   abc"]
    )
    func scheme(field: String) { #expect(AuthenticationMiddleware.bearerToken(field) == "abc") }

    @Test("Other schemes and empty headers have no token", arguments: ["Basic abc", "Bearer", "Bearer ", "abc", ""])
    func others(field: String) { #expect(AuthenticationMiddleware.bearerToken(field) == nil) }
}
