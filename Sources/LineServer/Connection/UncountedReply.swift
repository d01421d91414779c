import LineProtocol
import ServiceCore

extension Reply {
    /// The reply to a message that is allowed without being counted, while no database is there.
    static func uncounted(_ answer: UncountedAnswer) -> Reply {
        let fields =
            switch answer.status {
            case .allowed: "ALLOWED user=\(answer.user)"
            case .held: "HELD user=\(answer.user)"
            case .released: "OK user=\(answer.user) released=0"
            }
        let banner = answer.banner.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return .text("\(fields) degraded=1 banner=\"\(banner)\"")
    }
}
