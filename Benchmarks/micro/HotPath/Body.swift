import CMeasuredRegion

/// One piece of the hot path. Defined once, and run in two ways: counted by `Counts`, timed by `Times`.
public struct Body: Sendable {
    /// What the table and the thresholds call it.
    public let name: String
    /// How many requests one call stands for.
    public let requests: Int
    /// Prepares what the piece needs, and returns the piece itself, to be called again and again.
    public let prepare: @Sendable () -> () -> Void

    init(_ name: String, requests: Int = 1, _ prepare: @escaping @Sendable () -> () -> Void) {
        self.name = name
        self.requests = requests
        self.prepare = prepare
    }

    public static let all = decoding + encoding + connection + counting + authenticating + batching + client
}

/// The compiler must take it for granted that somebody looks at the value.
@inline(__always)
func keep<Value>(_ value: Value) {
    withUnsafePointer(to: value) { headroom_keep($0) }
}
