extension Body {
    static let counting = [
        Body("count 16 requests and their answers", requests: 16) {
            let metrics = MetricsUnderTest()
            return { metrics.turn(16) }
        }
    ]
}
