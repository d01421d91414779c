import LineClient
import ServiceCore

extension LineClient {
    static func connect(
        to address: ListenAddress,
        access: ClientAccess,
        timeout: Duration
    ) async throws -> LineClient {
        try await connect(host: address.host, port: address.port, access: access, timeout: timeout)
    }

    static func request(
        _ request: String,
        at address: ListenAddress,
        access: ClientAccess,
        timeout: Duration
    ) async throws -> [String] {
        try await self.request(request, host: address.host, port: address.port, access: access, timeout: timeout)
    }
}
