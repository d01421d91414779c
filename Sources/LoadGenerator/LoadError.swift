/// Why a run did not begin.
public enum LoadError: Error, CustomStringConvertible {
    case unreachable(String)
    case refused(String)
    case noGreeting
    case interrupted

    public var description: String {
        switch self {
        case .unreachable(let reason): "it cannot be reached: \(reason); start it, or name another service (--target)"
        case .refused(let reason): "it does not take the connection: \(reason)"
        case .noGreeting: "it did not answer PING within \(Int(LoadPlan.patience)) seconds"
        case .interrupted: "interrupted before it began"
        }
    }
}
