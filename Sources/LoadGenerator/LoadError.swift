/// Why a run did not start.
public enum LoadError: Error, CustomStringConvertible {
    case unreachable(String)
    case refused(String)
    case noHandshake
    case interrupted

    public var description: String {
        switch self {
        case .unreachable(let reason): "it cannot be reached: \(reason); start it, or name another service (--target)"
        case .refused(let reason): "it does not accept the connection: \(reason)"
        case .noHandshake: "it did not answer PING within \(Int(LoadPlan.replyTimeout)) seconds"
        case .interrupted: "interrupted before it started"
        }
    }
}
