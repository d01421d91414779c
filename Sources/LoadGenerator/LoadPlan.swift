import NIOCore

/// The settings of a run.
public struct LoadPlan: Sendable {
    public enum Pace: Sendable, Equatable {
        /// Each connection keeps `pipeline` requests in flight, and sends the next one after each reply.
        case closed(pipeline: Int)
        /// `rate` requests are due each second, independent of the answers.
        case open(rate: Double, Arrivals)
    }

    public enum Extent: Sendable, Equatable {
        case seconds(Double)
        case requests(Int)
    }

    public var host = "127.0.0.1"
    public var port = 6_747
    /// Adds TLS to a connection; nil: plain text.
    public var encryption: (@Sendable (ChannelPipeline.SynchronousOperations) throws -> Void)?
    /// The token that each connection sends with `AUTH`.
    public var token: String?
    public var connections = 64
    public var idleConnections = 0
    public var threads = 1
    public var pace = Pace.closed(pipeline: 1)
    public var extent = Extent.seconds(10)
    /// Seconds before the measurement.
    public var warmup = 1.0
    public var users = 100_000
    public var userPrefix = "00000000-0000-4000-8000-"
    public var distribution = Distribution.uniform
    public var request = LoadRequest.verb(.consume, messages: 1, keyShare: 0)
    public var seed: UInt64
    /// The requests that may wait for answers in an open loop, over all connections; more are not sent and count as
    /// dropped. Without this limit a slow server would fill the memory.
    public var waitingMaximum = 100_000

    public init(seed: UInt64) {
        self.seed = seed
    }

    /// Seconds to wait for replies at the end.
    public static let replyTimeout = 5.0
}
