import Synchronization
import Usage

/// Moves users from lane to lane when buckets are divided or move to another server, so that each user's requests keep
/// their order.
///
/// The lane that has a unit of users hands it over between two of its batches: it passes on the requests that wait,
/// until none waits any more. Until then new requests still go to it, so that none overtakes an earlier one. A request
/// that was on its way meanwhile is forwarded (`LaneQueue.enqueue`). So requests that one thread submits with the
/// routes that it has read before them are executed in their order.
final class LaneRouter: Sendable {
    private struct State {
        /// The routes for new requests.
        var current: LaneRoutes
        /// The routes for requests after all lanes have handed over.
        var target: LaneRoutes
        var lanes: [Lane] = []
        var map = BucketMap.undivided
        var placements = BucketPlacements.none
    }

    private let state: Mutex<State>
    /// A number that changes with `current`, so that a reader can keep the routes.
    fileprivate let generation = Atomic<Int>(0)
    /// Whether `target` may be another than `current`.
    private let isMoving = Atomic<Bool>(false)
    /// This is locked while a lane and the lanes that it hands over to change together. Only then are the locks of
    /// several queues taken at the same time.
    private let transferring = Mutex(())
    private let laneCount: Int

    init(laneCount: Int) {
        self.laneCount = laneCount
        let routes = LaneRoutes(buckets: BucketMap.undivided.settledCount, laneCount: laneCount)
        state = Mutex(State(current: routes, target: routes))
    }

    /// Sets the lanes. Call it before the first request.
    func attach(_ lanes: [Lane]) {
        state.withLock { $0.lanes = lanes }
    }

    var current: LaneRoutes { state.withLock { $0.current } }

    /// Sets the map of buckets. Callable from any thread.
    func follow(_ map: BucketMap) {
        follow { $0.map = map }
    }

    /// Sets the placements, and wakes the lanes whose server has changed. Callable from any thread.
    func follow(_ placements: BucketPlacements) {
        follow { $0.placements = placements }
        wake(state.withLock { $0.lanes })
    }

    private func follow(_ change: (inout State) -> Void) {
        wake(
            state.withLock { state in
                change(&state)
                let target = LaneRoutes(state.map, state.placements, laneCount: laneCount)
                guard state.target != target else { return [] }
                state.target = target
                isMoving.store(state.current != target, ordering: .releasing)
                return state.lanes
            }
        )
    }

    private func wake(_ lanes: [Lane]) {
        for lane in lanes { lane.wakeUp() }
    }

    /// Hands over the users who belong to other lanes now. The lane's own thread calls it between two batches.
    func handOver(from lane: Int) {
        guard isMoving.load(ordering: .acquiring) else { return }
        let (current, target, lanes) = state.withLock { ($0.current, $0.target, $0.lanes) }
        let leaving = current.units(leaving: lane, for: target)
        guard !leaving.isEmpty else { return }
        guard passOn(leaving, from: lanes[lane], to: lanes, by: target) else { return }
        wake(
            state.withLock { state in
                state.current.move(leaving, as: target)
                generation.add(1, ordering: .releasing)
                isMoving.store(state.current != state.target, ordering: .releasing)
                // The target may have changed meanwhile. Then another lane has to hand over what it has just received.
                return state.current != state.target ? state.lanes : []
            }
        )
    }

    /// Passes on the waiting requests of units of users that leave a lane, until none waits any more. Returns false if
    /// lanes are being closed, each of which then executes what it has.
    private func passOn(_ leaving: [Int], from lane: Lane, to lanes: [Lane], by routes: LaneRoutes) -> Bool {
        var destinations = [Int?](repeating: nil, count: LaneRoutes.units)
        for unit in leaving { destinations[unit] = routes.lane(ofUnit: unit) }
        let units = Dictionary(grouping: leaving) { routes.lane(ofUnit: $0) }
        while true {
            let handOver = transferring.withLock { _ in
                lane.handOver(to: destinations) {
                    for (destination, units) in units { lanes[destination].expect(units) }
                }
            }
            switch handOver {
            case .done: return true
            case .closed: return false
            case .waiting(let requests):
                // A lane that has finished takes nothing. This lane has not finished, because its own thread runs this.
                let refused = Dictionary(grouping: requests) { routes.lane(of: $0.user) }
                    .filter { !lanes[$0].takeOver($1) }
                guard refused.isEmpty else {
                    lane.keep(refused.values.flatMap(\.self))
                    return false
                }
            }
        }
    }
}

/// Keeps the routes between two changes, so that a request costs no lock.
public struct LaneRoutesReader {
    private let router: LaneRouter
    private var generation: Int
    public private(set) var routes: LaneRoutes

    init(_ router: LaneRouter) {
        self.router = router
        generation = router.generation.load(ordering: .acquiring)
        routes = router.current
    }

    /// Reads the routes before the first of several requests that are submitted together.
    ///
    /// - Returns: whether they have changed.
    @discardableResult
    public mutating func refresh() -> Bool {
        let newest = router.generation.load(ordering: .acquiring)
        guard newest != generation else { return false }
        (generation, routes) = (newest, router.current)
        return true
    }
}
