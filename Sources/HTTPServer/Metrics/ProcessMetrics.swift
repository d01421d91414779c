import Foundation
import ServiceCore

/// Resource usage of this process, from /proc; nil on systems without it.
struct ProcessMetrics {
    var cpuMicroseconds: UInt64
    var residentBytes: UInt64
    var virtualBytes: UInt64
    var openDescriptors: Int
    /// The most file descriptors; nil means no limit.
    var descriptorsMaximum: UInt64?
    var threads: UInt64
    var startedAtSeconds: UInt64

    init?() {
        // macOS has none of them: nil.
        guard let stat = ProcessMetrics.read("/proc/self/stat"), let system = ProcessMetrics.read("/proc/stat"),
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        self.init(stat: stat, system: system, descriptors: descriptors.count)
    }

    /// - Parameters:
    ///   - stat: /proc/self/stat. proc(5) numbers its fields from 1.
    ///   - system: /proc/stat, for the system's start time.
    init?(stat: String, system: String, descriptors: Int) {
        // The second field is the program's name in parentheses, and may hold anything.
        guard let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: end)...].split(separator: " ").map { UInt64($0) ?? 0 }
        let booted = system.split(separator: "\n").first { $0.hasPrefix("btime ") }?.split(separator: " ").last
        guard fields.count > 21, let bootedAt = booted.flatMap({ UInt64($0) }) else { return nil }
        func field(_ number: Int) -> UInt64 { fields[number - 3] }
        let ticksPerSecond = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        cpuMicroseconds = (field(14) + field(15)) * 1_000_000 / ticksPerSecond
        threads = field(20)
        startedAtSeconds = bootedAt + field(22) / ticksPerSecond
        virtualBytes = field(23)
        residentBytes = field(24) * UInt64(max(1, sysconf(Int32(_SC_PAGESIZE))))
        // The descriptor of the listing itself is not counted.
        openDescriptors = max(0, descriptors - 1)
        var limit = rlimit()
        let isLimited = getrlimit(LimitedResource.descriptors, &limit) == 0 && limit.rlim_cur != .max
        descriptorsMaximum = isLimited ? UInt64(limit.rlim_cur) : nil
    }

    private static func read(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
