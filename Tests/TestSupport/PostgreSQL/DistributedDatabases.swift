import Foundation

/// The databases over which `script/test --citus` runs tests in Swift; none in other runs.
public enum DistributedDatabases {
    /// The connection strings of their coordinators, as a superuser.
    public static let conninfos = (ProcessInfo.processInfo.environment["HEADROOM_TEST_DISTRIBUTED"] ?? "")
        .split(separator: "\n").map(String.init)
}
