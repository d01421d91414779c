import Foundation
import Testing

@testable import HTTPServer

@Suite("Documentation of metrics")
struct MetricsDocumentationTests {
    private func file(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test("the reference lists exactly the families, with type, labels and meaning, in order")
    func reference() throws {
        let rows = try file("docs/reference/metrics.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
            .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) } }
        let expected = Metric.all.map { metric in
            let labels = metric.labels.isEmpty ? "–" : metric.labels.joined(separator: "`, `")
            return [metric.name, metric.kind.rawValue, labels, metric.meaning]
        }
        #expect(rows == expected)
    }

    @Test("dashboards, rules and pages name only families that exist")
    func names() throws {
        let known = Set(
            Metric.all.flatMap { metric in
                metric.kind == .histogram ? ["_bucket", "_sum", "_count"].map { metric.name + $0 } : [metric.name]
            }
        )
        let paths = ["deploy/grafana/dashboards/headroom.json", "deploy/prometheus/rules.yml", "docs/monitoring.md"]
        for path in paths {
            var count = 0
            for match in try file(path).matches(of: /\b(headroom|process)_[a-z_]+_[a-z]+\b/) {
                let name = String(match.0)
                // Roles and files have such names too.
                if name.firstMatch(of: /^headroom_(service|operator|dashboard|user|set_aside)/) != nil { continue }
                count += 1
                #expect(known.contains(name) || Metric.all.contains { $0.name == name }, "\(name) in \(path)")
            }
            #expect(count >= 3, "\(path)")
        }
    }
}
