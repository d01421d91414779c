import Postgres

/// Which machine has the rows of each bucket. Empty in a database that is not distributed.
public struct BucketPlacements: Equatable, Sendable {
    /// A PostgreSQL server that has buckets.
    public struct Node: Hashable, Sendable {
        public var server: ServerAddress
        /// Whether it is the one that `database-url` names, which has buckets until they have moved to workers.
        var isCoordinator: Bool
    }

    /// In the order in which they were added to the database, so that a new one changes the lanes of few.
    public private(set) var nodes: [Node] = []
    private var nodeOfBucket: [Bucket: Int] = [:]

    static let none = BucketPlacements()

    private init() {}

    init(_ placements: [(bucket: Bucket, node: Node)]) {
        for (bucket, node) in placements {
            let index = nodes.firstIndex(of: node) ?? nodes.count
            if index == nodes.count { nodes.append(node) }
            nodeOfBucket[bucket] = index
        }
    }

    /// Decodes the result of `read_placements.sql`.
    init(_ result: QueryResult) throws(PostgresError) {
        var placements: [(bucket: Bucket, node: Node)] = []
        let (bucket, host) = (try result.column("bucket"), try result.column("host"))
        let (port, isCoordinator) = (try result.column("port"), try result.column("is_coordinator"))
        for row in 0..<result.rowCount {
            let node = Node(
                server: ServerAddress(host: result.text(row, host), port: try result.int32(row, port)),
                isCoordinator: try result.bool(row, isCoordinator)
            )
            placements.append((Bucket(truncatingIfNeeded: try result.int32(row, bucket)), node))
        }
        self.init(placements)
    }

    public var isDistributed: Bool { !nodes.isEmpty }

    /// How many servers the lanes are divided among.
    public var homeCount: Int { max(1, nodes.count) }

    /// The home of a bucket, below `homeCount`; nil for a bucket whose server is not known.
    func home(of bucket: Bucket) -> Int? { nodes.isEmpty ? 0 : nodeOfBucket[bucket] }

    /// The server that a lane connects to; nil if the database is not distributed.
    func node(ofLane lane: Int) -> Node? { nodes.isEmpty ? nil : nodes[lane % nodes.count] }

    /// One of the buckets at a lane's server, for its first receipt.
    func firstBucket(ofLane lane: Int, by map: BucketMap) -> Bucket {
        let own = map.isSettled && !nodes.isEmpty ? map.buckets.filter { home(of: $0) == lane % nodes.count } : []
        return own.isEmpty ? map.bucket(ofLane: lane) : own[lane / nodes.count % own.count]
    }

    /// Buckets of each node, in the order of `nodes`.
    public var bucketCounts: [Int] {
        nodeOfBucket.values.reduce(into: Array(repeating: 0, count: nodes.count)) { $0[$1] += 1 }
    }
}
