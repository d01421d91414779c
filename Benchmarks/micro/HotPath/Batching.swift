extension BenchmarkCase {
    static let batching =
        [
            BenchmarkCase("queue of 1024 requests, in and out", requests: 1_024) {
                var queue = QueueUnderTest(requests: 1_024, perTurn: 64)
                return { queue.turn() }
            }
        ]
        + [(1, 1), (64, 64), (1_024, 1_024), (64, 1), (1_024, 1)].map { requests, users in
            BenchmarkCase(name("batch", requests, users), requests: requests) {
                let batch = BatchUnderTest(requests: requests, users: users)
                return { batch.sort() }
            }
        }
        + [(1, 1), (64, 64), (1_024, 1_024)].map { requests, users in
            BenchmarkCase(name("parameters", requests, users), requests: requests) {
                var batch = BatchUnderTest(requests: requests, users: users)
                return { batch.makeParameters() }
            }
        }
        + [(1, 1), (64, 64), (1_024, 1_024), (1_024, 1)].map { requests, users in
            BenchmarkCase(name("answers", requests, users), requests: requests) {
                var batch = BatchUnderTest(requests: requests, users: users)
                return { batch.answer() }
            }
        }
        + [
            BenchmarkCase("parameters of 64 requests with a model", requests: 64) {
                var batch = BatchUnderTest(requests: 64, users: 64, in: Fixtures.parts)
                return { batch.makeParameters() }
            },
            BenchmarkCase("answers of 64 requests with a model", requests: 64) {
                var batch = BatchUnderTest(requests: 64, users: 64, in: Fixtures.parts)
                return { batch.answer() }
            },
        ]

    private static func name(_ what: String, _ requests: Int, _ users: Int) -> String {
        switch (requests, users) {
        case (1, _): "\(what) of 1 request"
        case (_, 1): "\(what) of \(requests) requests, one user"
        default: "\(what) of \(requests) requests, as many users"
        }
    }
}
