import Logging
import MetricsTestKit
import TestSupport
import Testing

@testable import HeadroomClient

@Suite("The client's metrics")
struct MetricsTests {
    @Test("Answers by verb, errors by code, connections, retries and degraded decisions are counted")
    func counted() async throws {
        let service = try await ServiceProcess.start()
        let metrics = TestMetrics()
        var configuration = HeadroomClient.Configuration.withTestTimeouts(service.endpoint)
        configuration.whenUnreachable = .allow
        let client = HeadroomClient(configuration, logger: .silent, metrics: metrics)
        func total(_ name: ClientMetrics.Name, _ labels: (String, String)...) throws -> Int64 {
            try metrics.expectCounter(name.rawValue, labels).totalValue
        }
        let user = UserID.random
        for _ in 0..<3 { _ = try await client.consume(user) }
        _ = try await client.usage(of: user)
        _ = try? await client.consume(user, messages: 0)
        #expect(try total(.requests, ("verb", "consume")) == 3)
        #expect(try total(.requests, ("verb", "usage")) == 1)
        #expect(try metrics.expectTimer(ClientMetrics.Name.duration.rawValue, [("verb", "consume")]).values.count == 3)
        #expect(try total(.errors, ("code", "badarg")) == 1)
        #expect(try total(.connectionsOpened) == 1 && total(.retries) == 0)
        try await service.crash()
        #expect(try await client.consume(user, deadline: .seconds(3)).isDegraded)
        #expect(try total(.degraded) == 1 && total(.connectionsLost) == 1)
        #expect(try total(.connectFailures) > 0)
        // The request may have been sent when the service died.
        let codes = ["unreachable", "unknown"].map { (try? total(.errors, ("code", $0))) ?? 0 }
        #expect(codes.reduce(0, +) == 1)
        await client.shutDown()
    }

    @Test("A connection closed after the last follower does not count as lost")
    func notNeeded() async throws {
        let service = try await ServiceProcess.start()
        let (metrics, log) = (TestMetrics(), RecordingLog())
        let client = HeadroomClient(.withTestTimeouts(service.endpoint), logger: log.logger, metrics: metrics)
        for number in 1...2 {
            for await _ in client.changes(of: .random) { break }
            try await waitUntil("its connection is closed") {
                log.messages(.debug).filter { $0 == "connection closed" }.count == number
            }
        }
        await client.shutDown()
        #expect(log.messages(.info) == [])
        #expect((try? metrics.expectCounter(ClientMetrics.Name.connectionsLost.rawValue).totalValue) ?? 0 == 0)
        // One for reads, and one for each time that a user is followed.
        #expect(try metrics.expectCounter(ClientMetrics.Name.connectionsOpened.rawValue).totalValue == 3)
    }
}
