/// The pauses before connecting again. They double, and are random, so that instances do not come all at once.
struct Backoff {
    private let first: Duration
    private let longest: Duration
    private var next: Duration

    init(first: Duration = .milliseconds(50), longest: Duration = .seconds(1)) {
        self.first = first
        self.longest = longest
        next = first
    }

    /// The next pause: between half of the current step and all of it.
    mutating func pause(using generator: inout some RandomNumberGenerator) -> Duration {
        defer { next = min(next * 2, longest) }
        return next * Double.random(in: 0.5...1, using: &generator)
    }

    mutating func reset() {
        next = first
    }
}
