import CMeasuredRegion

/// One part of the hot path, counted by `Counts` and timed by `Times`.
public struct BenchmarkCase: Sendable {
    /// The name in the table and in the thresholds.
    public let name: String
    /// The number of requests that one call represents.
    public let requests: Int
    /// Prepares the data and returns the measured closure, which is called repeatedly.
    public let prepare: @Sendable () -> () -> Void

    init(_ name: String, requests: Int = 1, _ prepare: @escaping @Sendable () -> () -> Void) {
        self.name = name
        self.requests = requests
        self.prepare = prepare
    }

    public static let all = decoding + encoding + connection + counting + authenticating + batching + client
}

/// Makes the compiler assume that the value is used.
@inline(__always)
func keep<Value>(_ value: Value) {
    withUnsafePointer(to: value) { headroom_keep($0) }
}
