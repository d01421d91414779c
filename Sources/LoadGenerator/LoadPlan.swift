import NIOCore

/// What a run does.
public struct LoadPlan: Sendable {
    public enum Pace: Sendable, Equatable {
        /// Each connection has so many requests in flight, and sends the next when a reply comes.
        case closed(pipeline: Int)
        /// So many requests are due each second, whatever the answers do.
        case open(rate: Double, Arrivals)
    }

    public enum Extent: Sendable, Equatable {
        case seconds(Double)
        case requests(Int)
    }

    public var host = "127.0.0.1"
    public var port = 6_747
    /// Puts what encrypts in front of a connection; nil: plain text.
    public var encryption: (@Sendable (ChannelPipeline.SynchronousOperations) throws -> Void)?
    /// What each connection authenticates itself with, by `AUTH`.
    public var token: String?
    public var connections = 64
    public var idleConnections = 0
    public var threads = 1
    public var pace = Pace.closed(pipeline: 1)
    public var extent = Extent.seconds(10)
    /// Seconds before anything is recorded.
    public var warmup = 1.0
    public var users = 100_000
    public var userPrefix = "00000000-0000-4000-8000-"
    public var distribution = Distribution.uniform
    public var request = LoadRequest.verb(.consume, messages: 1, keyShare: 0)
    public var seed: UInt64
    /// Requests that may wait for an answer in an open loop, over all connections: those to a server that answers too
    /// slowly would fill the memory. One more is not sent and counts as dropped.
    public var waitingMaximum = 100_000

    public init(seed: UInt64) {
        self.seed = seed
    }

    /// How long replies are waited for at the end.
    public static let patience = 5.0
}
