import Usage

extension Command {
    /// What was asked, without the arguments.
    public var verb: Verb {
        switch self {
        case .consume: .consume
        case .reserve: .reserve
        case .commit: .commit
        case .release: .release
        case .check: .check
        case .usage: .usage
        case .history: .history
        case .report: .report
        case .top: .top
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .setPlan: .setPlan
        case .grant: .grant
        case .resetUsage: .resetUsage
        case .forget: .forget
        case .ping: .ping
        case .echo: .echo
        case .help: .help
        case .info: .info
        case .authenticate: .auth
        case .quit: .quit
        case .hello: .hello
        case .client: .client
        case .command: .command
        case .select: .select
        }
    }
}

extension Verb {
    /// Where it stands in `allCases`, without looking: an enumeration without payloads is the number of its case, in
    /// the order of declaration (Swift's ABI, TypeLayout, "C-Like Enums"). Every request is counted by it.
    @inline(__always)
    public var place: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}

extension Tier {
    /// As `Verb.place`.
    @inline(__always)
    public var place: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}
