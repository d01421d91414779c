import Engine
import Foundation
import TestSupport
import Testing

@testable import HTTPServer

@Suite("The Prometheus encoder")
struct PrometheusEncoderTests {
    private let plain = Metric("headroom_things", .gauge, "Things\\that \"are\".\nReally.") { _ in nil }
    private let labelled = Metric("headroom_things_total", .counter, ["kind", "name"], "Things.") { _ in [] }
    private let times = Metric("headroom_time_seconds", .histogram, ["kind"], "Times.") { _ in [] }

    @Test("a family has its help, type and samples, escaped")
    func families() {
        var encoder = PrometheusEncoder()
        encoder.write(plain, [([], 3)])
        encoder.write(labelled, [(["a", "b\\\"\n"], 1), (["", "é{},"], UInt64.max)])
        #expect(
            encoder.text == """
                # HELP headroom_things Things\\\\that "are".\\nReally.
                # TYPE headroom_things gauge
                headroom_things 3
                # HELP headroom_things_total Things.
                # TYPE headroom_things_total counter
                headroom_things_total{kind="a",name="b\\\\\\"\\n"} 1
                headroom_things_total{kind="",name="é{},"} 18446744073709551615

                """
        )
    }

    @Test("a family without samples is left out")
    func empty() {
        var encoder = PrometheusEncoder()
        encoder.write(labelled, [])
        encoder.write(times, [])
        #expect(encoder.text.isEmpty)
    }

    @Test("microseconds are written exactly as seconds")
    func seconds() {
        let expected: [UInt64: String] = [
            0: "0", 1: "0.000001", 16: "0.000016", 500_000: "0.5", 1_000_000: "1", 8_388_608: "8.388608",
            123_456_789_010: "123456.78901",
        ]
        for (microseconds, seconds) in expected {
            var encoder = PrometheusEncoder()
            encoder.write(plain, [([], Seconds(microseconds: microseconds))])
            #expect(encoder.text.hasSuffix("headroom_things \(seconds)\n"))
        }
    }

    @Test("a histogram's buckets are cumulative, and the last has all values")
    func histograms() throws {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        let histogram = DoublingHistogram()
        var values: [UInt64] = []
        for _ in 0..<200 {
            let magnitude = UInt64.random(in: 0...40, using: &generator)
            values.append(UInt64.random(in: 0...(1 << magnitude), using: &generator))
        }
        for value in values { histogram.record(value) }
        var encoder = PrometheusEncoder()
        encoder.write(times, [(["x"], Histogram(.microseconds, histogram.counts))])
        var bounds: [String: Int] = [:]
        for line in encoder.text.split(separator: "\n") {
            guard let match = line.firstMatch(of: /_bucket\{kind="x",le="([^"]+)"\} (\d+)$/) else { continue }
            bounds[String(match.1)] = Int(match.2)
        }
        #expect(bounds.count == 21)
        for (bound, count) in bounds {
            let limit = bound == "+Inf" ? .infinity : try #require(Double(bound)) * 1e6
            #expect(values.count { Double($0) <= limit } == count, "le \(bound), seed \(seed)")
        }
        #expect(encoder.text.contains("headroom_time_seconds_count{kind=\"x\"} 200\n"))
        let sum = try #require(encoder.text.firstMatch(of: /_sum\{kind="x"\} (\S+)/)).1
        #expect(abs((Double(sum) ?? 0) * 1e6 - Double(values.reduce(0, +))) < 1_000, "seed \(seed)")
    }

    @Test("names follow Prometheus's conventions: a prefix, and _total for counters only")
    func names() {
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
        for metric in Metric.all {
            #expect(metric.name.wholeMatch(of: /(headroom|process)(_[a-z]+)+/) != nil, "\(metric.name)")
            #expect((metric.kind == .counter) == metric.name.hasSuffix("_total"), "\(metric.name)")
            #expect(metric.meaning.hasSuffix(".") && !metric.meaning.contains("|"), "\(metric.name)")
            #expect(metric.labels.allSatisfy { $0.wholeMatch(of: /[a-z]+/) != nil && $0 != "le" }, "\(metric.name)")
        }
    }
}

@Suite("Process metrics")
struct ProcessMetricsTests {
    @Test("fields of /proc are read by number, whatever the program's name")
    func fields() throws {
        let stat = "77 (a) b ) S " + (4...52).map { "\($0 * 100)" }.joined(separator: " ") + "\n"
        let figures = try #require(ProcessMetrics(stat: stat, system: "cpu 1\nbtime 1000\nx 1\n", descriptors: 8))
        let ticks = UInt64(sysconf(Int32(_SC_CLK_TCK)))
        #expect(figures.cpuMicroseconds == 2_900 * 1_000_000 / ticks)
        #expect(figures.threads == 2_000)
        #expect(figures.startedAtSeconds == 1_000 + 2_200 / ticks)
        #expect(figures.virtualBytes == 2_300)
        #expect(figures.residentBytes == 2_400 * UInt64(sysconf(Int32(_SC_PAGESIZE))))
        #expect(figures.openDescriptors == 7)
        #expect(ProcessMetrics(stat: "", system: "btime 1000", descriptors: 8) == nil)
        #expect(ProcessMetrics(stat: stat, system: "", descriptors: 8) == nil)
    }

    @Test("are plausible for this process")
    func own() throws {
        let figures = try #require(ProcessMetrics())
        let now = UInt64(Date().timeIntervalSince1970)
        #expect((now - 7_200...now + 2).contains(figures.startedAtSeconds))
        #expect(figures.residentBytes > 1_000_000 && figures.residentBytes < figures.virtualBytes)
        #expect(figures.openDescriptors >= 3 && figures.threads >= 1)
    }
}
