import Foundation

/// The memory of the machine or container.
enum MachineMemory {
    /// The memory of the machine, or of the container if that is less.
    static var bytes: Int {
        let machine = Int(clamping: ProcessInfo.processInfo.physicalMemory)
        let limits = limitFiles.compactMap { limit(in: try? String(contentsOfFile: $0, encoding: .utf8)) }
        return limits.reduce(machine, min)
    }

    /// The files with limits of control groups, versions 2 and 1, as seen from inside a container. macOS has none.
    private static let limitFiles = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]

    /// - Parameter text: a number of bytes, or "max" for no limit.
    static func limit(in text: String?) -> Int? {
        text.flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
    }
}
