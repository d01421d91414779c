import CMeasuredRegion
import Foundation
import HeadroomClient

/// Measures the client library: concurrent tasks send CONSUME over one connection. Prints the throughput and the memory
/// allocations per request as one line of JSON.
///
///     client-load PORT TASKS SECONDS USERS
///
/// The users are numbered 0 to USERS - 1. Each gets the plan `pro` before the measurement, so that none reaches a
/// limit.
@main
struct ClientLoad {
    private struct Result: Encodable {
        var tasks: Int
        var requests: Int
        var seconds: Double
        var requestsPerSecond: Int
        var allocationsPerRequest: Double
    }

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst().compactMap { Int($0) }
        guard arguments.count == 4 else {
            FileHandle.standardError.write(Data("usage: client-load PORT TASKS SECONDS USERS\n".utf8))
            exit(64)
        }
        let (tasks, seconds) = (arguments[1], arguments[2])
        let client = HeadroomClient(.init(port: arguments[0]))
        let users = (0..<arguments[3]).map(user)
        try await setPlans(users, client)
        // Not measured: opens the connection, and fills caches and buffers.
        _ = try await sendRequests(client, tasks: tasks, users: users, for: .seconds(1))
        let allocationsBefore = headroom_allocation_count()
        let start = ContinuousClock.now
        let requests = try await sendRequests(client, tasks: tasks, users: users, for: .seconds(seconds))
        let duration = start.duration(to: .now) / .seconds(1)
        let allocations = headroom_allocation_count() - allocationsBefore
        await client.shutDown()
        let result = Result(
            tasks: tasks,
            requests: requests,
            seconds: duration,
            requestsPerSecond: Int(Double(requests) / duration),
            allocationsPerRequest: Double(allocations) / Double(requests)
        )
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        print(String(decoding: try encoder.encode(result), as: UTF8.self))
    }

    private static func user(_ number: Int) -> UserID {
        // redis-benchmark replaces __rand_int__ by 12 decimal digits. In the same form, both benchmarks use the same
        // users.
        guard let user = UserID("00000000-0000-0000-0000-" + String(format: "%012d", number)) else { exit(70) }
        return user
    }

    private static func setPlans(_ users: [UserID], _ client: HeadroomClient) async throws {
        try await withThrowingTaskGroup { group in
            for worker in 0..<16 {
                group.addTask {
                    for number in stride(from: worker, to: users.count, by: 16) {
                        _ = try await client.setPlan(
                            PlanChange(user: users[number], plan: "pro"),
                            deadline: .seconds(30)
                        )
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private static func sendRequests(
        _ client: HeadroomClient,
        tasks: Int,
        users: [UserID],
        for duration: Duration
    ) async throws -> Int {
        let end = ContinuousClock.now + duration
        return try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<tasks {
                group.addTask {
                    var requests = 0
                    // A prime stride visits all users, and each task starts at another one.
                    var next = task * 7_919
                    while ContinuousClock.now < end {
                        next = (next + 104_729) % users.count
                        _ = try await client.consume(users[next], deadline: .seconds(30))
                        requests += 1
                    }
                    return requests
                }
            }
            return try await group.reduce(0, +)
        }
    }
}
