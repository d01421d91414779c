import Postgres

/// The server that has the rows of each bucket. Empty in a database that is not distributed.
public struct BucketPlacements: Equatable, Sendable {
    /// A PostgreSQL server that has buckets, with its standbys.
    public struct Node: Equatable, Sendable {
        /// The number in Citus's catalog, which stays the same when a standby takes over.
        var number: Int32
        /// The addresses: the primary's, as the coordinator knows it, and then those of standbys.
        public var servers: [ServerAddress]
        /// Whether this is the server of `database-url`, which has buckets until they have moved to workers.
        var isCoordinator: Bool
    }

    /// The nodes in the order in which they were added to the database, so that a new one changes the lanes of few.
    public private(set) var nodes: [Node] = []
    private var nodeOfBucket: [Bucket: Int] = [:]

    static let none = BucketPlacements()

    private init() {}

    /// - Parameter placements: the node of each bucket; nodes with the same number are equal.
    init(_ placements: [(bucket: Bucket, node: Node)]) {
        for (bucket, node) in placements {
            let index = nodes.firstIndex { $0.number == node.number } ?? nodes.count
            if index == nodes.count { nodes.append(node) }
            nodeOfBucket[bucket] = index
        }
    }

    /// Decodes the result of `read_placements.sql`.
    init(_ result: QueryResult) throws(PostgresError) {
        var placements: [(bucket: Bucket, node: Node)] = []
        let (bucket, number) = (try result.column("bucket"), try result.column("node_number"))
        let (hosts, ports) = (try result.column("hosts"), try result.column("ports"))
        let isCoordinator = try result.column("is_coordinator")
        for row in 0..<result.rowCount {
            let addresses = zip(
                try result.texts(row, hosts).compactMap(\.self),
                try result.int32s(row, ports).compactMap(\.self)
            )
            let node = Node(
                number: try result.int32(row, number),
                servers: addresses.map { ServerAddress(host: $0, port: $1) },
                isCoordinator: try result.bool(row, isCoordinator)
            )
            placements.append((Bucket(truncatingIfNeeded: try result.int32(row, bucket)), node))
        }
        self.init(placements)
    }

    public var isDistributed: Bool { !nodes.isEmpty }

    /// The number of servers among which the lanes are divided.
    public var homeCount: Int { max(1, nodes.count) }

    /// The home of a bucket, below `homeCount`; nil if its server is unknown.
    func home(of bucket: Bucket) -> Int? { nodes.isEmpty ? 0 : nodeOfBucket[bucket] }

    /// The server that a lane connects to; nil if the database is not distributed.
    func node(ofLane lane: Int) -> Node? { nodes.isEmpty ? nil : nodes[lane % nodes.count] }

    /// A bucket at the lane's server, for its first receipt.
    func firstBucket(ofLane lane: Int, by map: BucketMap) -> Bucket {
        let own = map.isSettled && !nodes.isEmpty ? map.buckets.filter { home(of: $0) == lane % nodes.count } : []
        return own.isEmpty ? map.bucket(ofLane: lane) : own[lane / nodes.count % own.count]
    }

    /// The number of buckets of each node, in the order of `nodes`.
    public var bucketCounts: [Int] {
        nodeOfBucket.values.reduce(into: Array(repeating: 0, count: nodes.count)) { $0[$1] += 1 }
    }
}
