import Testing

@testable import Postgres

@Suite struct ServerAddressTests {
    @Test(arguments: [
        ("w1:5433", "w1:5433"), ("w1", "w1:5432"), ("10.0.0.7:1", "10.0.0.7:1"),
    ])
    func anAddressIsAHostAndAPort(text: String, address: String) {
        #expect(ServerAddress(text)?.description == address)
    }

    @Test(arguments: ["", ":5432", "w1:", "w1:port", "w1:0", "w1:65536", "/run/postgresql", "/run/postgresql:5432"])
    func otherTextsAreNone(text: String) {
        #expect(ServerAddress(text) == nil)
    }

    @Test func theAddressOfADatabaseIsThatOfItsOnlyServer() {
        #expect(DatabaseTopology("postgresql://u:p@w1:5433/chat").address == ServerAddress(host: "w1", port: 5_433))
        #expect(DatabaseTopology("host=w1 dbname=chat").address == ServerAddress(host: "w1", port: 5_432))
        #expect(DatabaseTopology("postgresql://w1,w2/chat").address == nil)
        #expect(DatabaseTopology("host=/run/postgresql dbname=chat").address == nil)
        #expect(DatabaseTopology("dbname=chat").address == nil)
    }
}
