import LineClient
import OperatorConsole
import ServiceCore

/// Samples a service repeatedly: its state on one connection, and its busiest users on another, because that answer may
/// take long.
actor ServiceWatch {
    private let address: ListenAddress
    private let access: ClientAccess
    private let users: Int
    private let target: String
    private var client: LineClient?
    private var earlier: (info: ServiceInfo, at: ContinuousClock.Instant)?
    private var busiest: [Record]?
    private var search: Task<Void, Never>?
    private var searchAgainAt = ContinuousClock.now

    init(address: ListenAddress, access: ClientAccess, users: Int, target: String) {
        self.address = address
        self.access = access
        self.users = users
        self.target = target
    }

    /// Uses one connection, which is reopened after it was lost.
    func sample() async throws -> TopSample {
        do {
            let open: LineClient
            if let client {
                open = client
            } else {
                open = try await LineClient.connect(to: address, access: access, timeout: .seconds(2))
                client = open
            }
            return try await sample(open, awaitingUsers: false)
        } catch {
            await client?.close()
            client = nil
            throw error
        }
    }

    /// - Parameter awaitingUsers: whether to wait for the busiest users.
    func sample(_ client: LineClient, awaitingUsers: Bool) async throws -> TopSample {
        if awaitingUsers {
            busiest = try await topUsers()
        } else {
            searchIfDue()
        }
        let info = try ServiceInfo(lines: await client.request("INFO", timeout: .seconds(2)))
        let now = ContinuousClock.now
        let sample = TopSample(
            info,
            after: earlier.map { ($0.info, ($0.at.duration(to: now)).seconds) },
            busiest: users == 0 ? [] : busiest,
            target: target
        )
        earlier = (info, now)
        return sample
    }

    func close() async {
        search?.cancel()
        await client?.close()
    }

    private func searchIfDue() {
        guard users > 0, search == nil, .now >= searchAgainAt else { return }
        search = Task {
            let began = ContinuousClock.now
            // A refused request may succeed later; until then samples keep the last answer.
            if let found = try? await topUsers() { busiest = found }
            let took = ContinuousClock.now - began
            searchAgainAt = .now + max(.seconds(5), took * 10)
            search = nil
        }
    }

    private func topUsers() async throws -> [Record]? {
        guard users > 0 else { return nil }
        let lines = try await LineClient.request(
            "TOP \(users)",
            at: address,
            access: access,
            timeout: .seconds(70)
        )
        return try [Record](lines, status: "PERIOD")
    }
}

extension Duration {
    fileprivate var seconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
