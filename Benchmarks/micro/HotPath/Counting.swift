extension BenchmarkCase {
    static let counting = [
        BenchmarkCase("count 16 requests and their answers", requests: 16) {
            let metrics = MetricsUnderTest()
            return { metrics.turn(16) }
        },
        // Once for all requests of a batch.
        BenchmarkCase("count a batch in its lane", requests: 1) {
            let metrics = LaneMetricsUnderTest()
            return { metrics.countBatch() }
        },
    ]
}
