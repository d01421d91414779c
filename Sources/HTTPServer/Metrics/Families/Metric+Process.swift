import ServiceCore

extension Metric {
    static let tracing: [Metric] = [
        Metric(
            "headroom_spans_total",
            .counter,
            ["outcome"],
            "Spans of traces: exported to the collector; dropped, because too many waited; or failed, because the collector "
                + "refused them or could not be reached. Absent where nothing is traced."
        ) {
            $0.service.tracing.map { tracing in
                SpanMetrics.Outcome.allCases.map { ([$0.rawValue], tracing.metrics[$0]) }
            } ?? []
        }
    ]

    static let process: [Metric] = [
        Metric("process_cpu_seconds_total", .counter, "Processor time of the service, user and system.") {
            $0.process.map { Seconds(microseconds: $0.cpuMicroseconds) }
        },
        Metric("process_resident_memory_bytes", .gauge, "Resident memory.") { $0.process?.residentBytes },
        Metric("process_virtual_memory_bytes", .gauge, "Virtual memory.") { $0.process?.virtualBytes },
        Metric("process_open_fds", .gauge, "Open file descriptors.") { $0.process?.openDescriptors },
        Metric("process_max_fds", .gauge, "Maximum number of open file descriptors.") {
            $0.process?.descriptorsMaximum
        },
        Metric("process_threads", .gauge, "Threads.") { $0.process?.threads },
        Metric("process_start_time_seconds", .gauge, "Start time of the service, in seconds since 1970.") {
            $0.process?.startedAtSeconds
        },
    ]
}
