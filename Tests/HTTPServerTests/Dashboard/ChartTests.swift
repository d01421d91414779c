import Foundation
import TestSupport
import Testing

@testable import HTTPServer

@Suite("Charts")
struct ChartTests {
    /// All numbers of an attribute, in order.
    private func numbers(_ attribute: String, of element: String, in svg: String) -> [Double] {
        svg.components(separatedBy: "<").filter { $0.hasPrefix(element) }.compactMap { part in
            guard let start = part.range(of: " \(attribute)=\"") else { return nil }
            return Double(part[start.upperBound...].prefix { $0 != "\"" && $0 != "%" })
        }
    }

    @Test("An axis has steps of 1, 2 or 5 and covers the maximum")
    func axis() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let maximum = Int(generator.next() >> 33) >> Int.random(in: 0..<32, using: &generator)
            let axis = ValueAxis(upTo: maximum)
            #expect(axis.top >= maximum && axis.marks.count <= 5 && axis.marks.first == 0, "seed \(seed), \(maximum)")
            #expect(axis.marks.last == axis.top, "seed \(seed), \(maximum)")
            let digits = String(axis.step).trimmingCharacters(in: CharacterSet(charactersIn: "0"))
            #expect(["1", "2", "5"].contains(digits), "seed \(seed), \(maximum)")
        }
        #expect(ValueAxis(upTo: 0).marks == [0, 1])
        #expect(ValueAxis(upTo: 80_500).marks == [0, 50_000, 100_000])
    }

    private func chart(_ values: [Int]) -> ColumnChart {
        ColumnChart(
            id: "c",
            title: "Messages",
            summary: "All of them",
            columns: values.enumerated().map { ColumnChart.Column(label: "d\($0)", name: "day \($0)", value: $1) }
        )
    }

    @Test("Columns are in proportion to their values, and nonzero ones are visible")
    func heights() {
        let values = [1_000_000, 500_000, 250_000, 1, 0]
        let svg = chart(values).svg
        let heights = numbers("height", of: "rect class=\"value\"", in: svg)
        #expect(heights.count == 5)
        #expect(abs(heights[0] - 2 * heights[1]) <= 0.2 && abs(heights[1] - 2 * heights[2]) <= 0.2)
        #expect(heights[3] == 1.5 && heights[4] == 0)
        let positions = numbers("x", of: "rect class=\"touch\"", in: svg)
        #expect(positions == [0, 20, 40, 60, 80])
    }

    @Test("A chart has a title, a description, and a name for each column")
    func names() {
        let svg = chart([3, 1]).svg
        #expect(svg.contains("<title id=\"c-title\">Messages</title>"))
        #expect(svg.contains("<desc id=\"c-summary\">All of them</desc>"))
        #expect(svg.contains("aria-labelledby=\"c-title c-summary\""))
        #expect(svg.contains("<title>day 0: 3 messages</title>"))
        #expect(svg.contains("<title>day 1: 1 message</title>"))
    }

    @Test("Labels are left out evenly, but never the newest")
    func labels() {
        let svg = chart(Array(repeating: 5, count: 30)).svg
        for width in ["narrow", "medium", "wide"] {
            let shown = svg.components(separatedBy: "<").filter {
                $0.hasPrefix("text class=\"label") && $0.contains("at-\(width)")
            }
            #expect(shown.last?.hasSuffix(">d29") == true)
            #expect((3...30).contains(shown.count), "\(width): \(shown.count)")
        }
    }

    @Test("All text in a chart is escaped")
    func escaping() {
        let markup = "\"><script>alert('1')</script>&"
        let column = ColumnChart.Column(label: markup, name: markup, value: 1)
        let bar = ShareBar(id: "b", title: markup, summary: markup, parts: [ShareBar.Part(name: markup, count: 1)])
        for svg in [ColumnChart(id: "c", title: markup, summary: markup, columns: [column]).svg, bar.svg] {
            #expect(!svg.contains("<script") && !svg.contains("'1'"))
            #expect(svg.contains("&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;"))
        }
    }

    @Test("A chart without columns and a chart of zeros are valid")
    func empty() {
        #expect(chart([]).svg.contains("</svg>"))
        #expect(numbers("height", of: "rect class=\"value\"", in: chart([0, 0]).svg) == [0, 0])
    }

    @Test("Parts fill a bar, and each nonzero part is visible")
    func shares() {
        let seed = SeededGenerator.newSeed()
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let counts = (0..<4).map { _ in Int(generator.next() >> 40) >> Int.random(in: 0..<64, using: &generator) }
            let bar = ShareBar(
                id: "b",
                title: "",
                summary: "",
                parts: counts.map { ShareBar.Part(name: "p", count: $0) }
            )
            let widths = numbers("width", of: "rect class=\"p\"", in: bar.svg)
            let positions = numbers("x", of: "rect class=\"p\"", in: bar.svg)
            let shown = counts.filter { $0 > 0 }
            #expect(widths.count == shown.count, "seed \(seed)")
            #expect(widths.allSatisfy { $0 >= 5.9 }, "seed \(seed), \(counts)")
            guard let last = widths.last, let position = positions.last else { continue }
            #expect(abs(position + last - 1_000) < 1, "seed \(seed), \(counts)")
        }
    }

    @Test("A bar that is not full shows the rest, and marks are in proportion")
    func rest() {
        let bar = ShareBar(
            id: "b",
            title: "",
            summary: "",
            parts: [ShareBar.Part(name: "p", count: 400)],
            whole: 800,
            marks: [640, 760, 800]
        )
        #expect(numbers("width", of: "rect class=\"p\"", in: bar.svg) == [500])
        #expect(numbers("x1", of: "line", in: bar.svg) == [800, 950])
        #expect(ShareBar(id: "b", title: "", summary: "", parts: []).svg.contains("class=\"rest\""))
    }
}
