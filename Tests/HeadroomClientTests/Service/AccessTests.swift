import Foundation
import HeadroomClient
import TestSupport
import Testing

@Suite("Authentication and TLS", .serialized)
struct AccessTests {
    @Test("A token, also from a file, permits its scopes; without one a request fails at once")
    func tokens() async throws {
        let service = try await ServiceProcess.start("--authentication", "required")
        let token = try await service.token("chat")
        let log = RecordingLog()
        let directory = try TemporaryDirectory()
        let file = directory.path + "/token"
        try Data((token + "\n").utf8).write(to: URL(filePath: file))
        for credentials in [HeadroomClient.Credentials(token: token, name: "backend"), .init(tokenFile: file)] {
            let configuration = HeadroomClient.Configuration.withTestTimeouts(
                service.endpoint,
                credentials: credentials
            )
            let client = HeadroomClient(configuration, logger: log.logger)
            #expect(try await client.consume(.random).isAllowed)
            let error = await #expect(throws: HeadroomError.self) {
                try await client.setPlan(PlanChange(user: .random, plan: "pro"))
            }
            #expect(error?.code == .forbidden && error?.isTransient == false)
            await client.shutDown()
            #expect(!"\(credentials)".contains(token) && !String(reflecting: configuration).contains(token))
        }
        for credentials in [nil, HeadroomClient.Credentials(token: "headroom_wrong")] {
            let client = HeadroomClient(
                .withTestTimeouts(service.endpoint, credentials: credentials),
                logger: log.logger
            )
            let error = await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
            #expect(error?.code == .notAuthenticated)
            await client.shutDown()
        }
        #expect(!log.text.contains(token) && !log.text.contains("headroom_wrong"))
    }

    @Test("A token without the scope for changes ends them, and the log has the reason")
    func changesRefused() async throws {
        let service = try await ServiceProcess.start("--authentication", "required")
        let token = try await service.token("chat")
        let log = RecordingLog()
        let client = HeadroomClient(
            .withTestTimeouts(service.endpoint, credentials: .init(token: token)),
            logger: log.logger
        )
        #expect(try await client.consume(.random).isAllowed)
        for await _ in client.changes(of: .random) { Issue.record("a change arrives without permission") }
        #expect(log.messages(.error) == ["changes cannot be followed"])
        await client.shutDown()
    }

    /// A service with its own CA, for one name or address.
    private static func certificate(for name: String, in directory: TemporaryDirectory) throws -> (String, String) {
        let (certificate, key) = (directory.path + "/certificate.pem", directory.path + "/key.pem")
        try Process.run(
            URL(filePath: "/usr/bin/openssl"),
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                "-subj", "/CN=headroom", "-addext", "subjectAltName=\(name)", "-out", certificate, "-keyout", key,
            ]
        )
        return (certificate, key)
    }

    @Test("An endpoint by address accepts a certificate for the address")
    func address() async throws {
        let directory = try TemporaryDirectory()
        let (certificate, key) = try Self.certificate(for: "IP:127.0.0.1", in: directory)
        let service = try await ServiceProcess.start("--tls-certificate", certificate, "--tls-key", key)
        let tls = try HeadroomClient.TLS(ca: certificate)
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.tls = tls }
        try await HeadroomClient.with(service, configure: configure) { client in
            let decision = try await client.consume(.random)
            #expect(decision.isAllowed)
        }
    }

    @Test("A certificate of an unknown CA is refused")
    func tls() async throws {
        let directory = try TemporaryDirectory()
        let (certificate, key) = try Self.certificate(for: "DNS:localhost", in: directory)
        let service = try await ServiceProcess.start("--tls-certificate", certificate, "--tls-key", key)
        let trusting = try HeadroomClient.TLS(ca: certificate, serverName: "localhost")
        let configure: (inout HeadroomClient.Configuration) -> Void = { $0.tls = trusting }
        try await HeadroomClient.with(service, configure: configure) { client in
            let user = UserID.random
            let decision = try await client.consume(user)
            let usage = try await client.usage(of: user)
            #expect(decision.isAllowed && usage.used == 1)
        }
        let stranger = try HeadroomClient.TLS(serverName: "localhost")
        let misnamed = try HeadroomClient.TLS(ca: certificate, serverName: "example.org")
        for tls in [nil, stranger, misnamed] {
            let configure: (inout HeadroomClient.Configuration) -> Void = {
                $0.tls = tls
                $0.deadline = .seconds(1)
            }
            try await HeadroomClient.with(service, configure: configure) { client in
                await #expect(throws: HeadroomError.self) { try await client.consume(.random) }
            }
        }
        #expect(throws: (any Error).self) { try HeadroomClient.TLS(ca: directory.path + "/nothing.pem") }
        #expect(throws: (any Error).self) { try HeadroomClient.TLS(ca: certificate, certificate: certificate) }
        #expect(throws: (any Error).self) { try HeadroomClient.TLS(ca: certificate, key: key) }
        #expect(throws: (any Error).self) { try HeadroomClient.TLS(ca: certificate, serverName: "127.0.0.1") }
    }
}
