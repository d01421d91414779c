import Foundation

/// How much memory there is to share out.
enum MachineMemory {
    /// The machine's, or the container's where that has less.
    static var bytes: Int {
        let machine = Int(clamping: ProcessInfo.processInfo.physicalMemory)
        let limits = limitFiles.compactMap { limit(in: try? String(contentsOfFile: $0, encoding: .utf8)) }
        return limits.reduce(machine, min)
    }

    /// Of control groups, version 2 and version 1, as a container sees its own.
    private static let limitFiles = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]

    /// - Parameter text: a number of bytes, or "max" where there is no limit.
    static func limit(in text: String?) -> Int? {
        text.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }
}
