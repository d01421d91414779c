import HeadroomClient

extension HeadroomClient {
    /// Runs `body` with a client of these services, and shuts the client down.
    @discardableResult
    public static func with<Result>(
        _ services: ServiceProcess...,
        configure: (inout Configuration) -> Void = { _ in },
        _ body: (HeadroomClient) async throws -> Result
    ) async throws -> Result {
        var configuration = Configuration.withTestTimeouts(services.map(\.endpoint))
        configure(&configuration)
        let client = HeadroomClient(configuration)
        do {
            let result = try await body(client)
            await client.shutDown()
            return result
        } catch {
            await client.shutDown()
            throw error
        }
    }
}

extension HeadroomClient.Configuration {
    /// A configuration whose timeouts suit a machine that is busy with other tests.
    public static func withTestTimeouts(
        _ endpoints: [HeadroomClient.Endpoint],
        credentials: HeadroomClient.Credentials? = nil
    ) -> Self {
        var configuration = Self(endpoints: endpoints, credentials: credentials)
        configuration.deadline = waitLimit
        configuration.attemptTimeout = waitLimit
        configuration.connectTimeout = waitLimit
        return configuration
    }

    public static func withTestTimeouts(
        _ endpoint: HeadroomClient.Endpoint,
        credentials: HeadroomClient.Credentials? = nil
    ) -> Self {
        withTestTimeouts([endpoint], credentials: credentials)
    }
}
