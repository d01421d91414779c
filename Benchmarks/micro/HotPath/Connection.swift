extension BenchmarkCase {
    static let connection = [
        turns("connection, 1 request and its reply", requests: 1),
        turns("connection, 16 requests and their replies", requests: 16),
    ]

    /// A number of requests, their outcomes, and the replies in order.
    private static func turns(_ name: String, requests: Int) -> BenchmarkCase {
        BenchmarkCase(name, requests: requests) {
            var connection = ConnectionUnderTest()
            return { connection.turn(requests) }
        }
    }
}
