import HeadroomClient

extension HeadroomClient {
    /// A client of one service or several, which is shut down when the body is done.
    @discardableResult
    public static func with<Result>(
        _ services: ServiceProcess...,
        configure: (inout Configuration) -> Void = { _ in },
        _ body: (HeadroomClient) async throws -> Result
    ) async throws -> Result {
        var configuration = Configuration.patient(services.map(\.endpoint))
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
    /// Waits for as long as a machine may take that is busy with other tests.
    public static func patient(
        _ endpoints: [HeadroomClient.Endpoint],
        credentials: HeadroomClient.Credentials? = nil
    ) -> Self {
        var configuration = Self(endpoints: endpoints, credentials: credentials)
        configuration.deadline = waitLimit
        configuration.attemptTimeout = waitLimit
        configuration.connectTimeout = waitLimit
        return configuration
    }

    public static func patient(
        _ endpoint: HeadroomClient.Endpoint,
        credentials: HeadroomClient.Credentials? = nil
    ) -> Self {
        patient([endpoint], credentials: credentials)
    }
}
