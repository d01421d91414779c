import Testing

@testable import Postgres

@Suite struct ServerAddressTests {
    @Test(arguments: [("w1:5433", "w1:5433"), ("w1", "w1:5432"), ("10.0.0.7:1", "10.0.0.7:1")])
    func anAddressIsAHostAndAPort(text: String, address: String) {
        #expect(ServerAddress(text)?.description == address)
    }

    @Test(arguments: ["", ":5432", "w1:", "w1:port", "w1:0", "w1:65536", "/run/postgresql", "/run/postgresql:5432"])
    func otherTextsAreNone(text: String) { #expect(ServerAddress(text) == nil) }

    @Test(arguments: [
        ("postgresql://u:p@w1:5433/chat", "w1:5433"), ("host=w1 dbname=chat", "w1:5432"),
        ("postgresql://w1,w2/chat", nil), ("host=/run/postgresql dbname=chat", nil), ("dbname=chat", nil),
    ])
    func theAddressInAConnectionStringIsThatOfItsOnlyServer(conninfo: String, address: String?) throws {
        #expect(try ConnectionParameters(parsing: conninfo).address?.description == address)
    }

    @Test func otherServersHaveTheSameLogin() throws {
        let servers = [ServerAddress(host: "w1", port: 5_433), ServerAddress(host: "w2", port: 5_432)]
        let moved = try ConnectionParameters(parsing: "host=a,b port=1,2 dbname=chat user=ada").moved(to: servers)
        #expect(moved.redacted == "host=w1,w2 port=5433,5432 dbname=chat user=ada")
    }
}
