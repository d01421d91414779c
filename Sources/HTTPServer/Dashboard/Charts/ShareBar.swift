/// Parts of a whole side by side in one bar, as SVG. Its letters are a table beside it.
struct ShareBar {
    struct Part {
        /// A class of the stylesheet's.
        var name: String
        var count: Int
    }

    var id: String
    var title: String
    var summary: String
    var parts: [Part]
    /// Nil: the parts are all.
    var whole: Int?
    /// Where lines stand across the bar, as counts.
    var marks: [Int] = []

    private static let length = 1_000.0
    private static let height = 24.0
    /// What is not nothing is to be seen.
    private static let shortest = 6.0
    private static let gap = 3.0

    var svg: String {
        let drawn = rectangles.map { part, x, width in
            "<rect class=\"\(escaped(part.name))\" x=\"\(coordinate(x))\" y=\"0\" width=\"\(coordinate(width))\""
                + " height=\"\(coordinate(ShareBar.height))\"/>"
        }
        let total = self.total
        let lines = marks.filter { $0 > 0 && $0 < total }.map { mark in
            let x = coordinate(ShareBar.length * Double(mark) / Double(total))
            return "<line class=\"threshold\" x1=\"\(x)\" x2=\"\(x)\" y1=\"0\" y2=\"\(coordinate(ShareBar.height))\"/>"
        }
        return "<svg class=\"share\" viewBox=\"0 0 \(coordinate(ShareBar.length)) \(coordinate(ShareBar.height))\""
            + " preserveAspectRatio=\"none\" role=\"img\" aria-labelledby=\"\(id)-title \(id)-summary\">"
            + "<title id=\"\(id)-title\">\(escaped(title))</title><desc id=\"\(id)-summary\">\(escaped(summary))</desc>"
            + "<rect class=\"rest\" x=\"0\" y=\"0\" width=\"\(coordinate(ShareBar.length))\""
            + " height=\"\(coordinate(ShareBar.height))\"/>" + drawn.joined() + lines.joined() + "</svg>"
    }

    private var total: Int { max(whole ?? 0, parts.reduce(0) { $0 + $1.count }) }

    /// Widths as the counts are, but for those that would vanish: the others give what these need.
    private var rectangles: [(part: Part, x: Double, width: Double)] {
        let shown = parts.filter { $0.count > 0 }
        guard total > 0, !shown.isEmpty else { return [] }
        let filled = ShareBar.length * Double(shown.reduce(0) { $0 + $1.count }) / Double(total)
        let room =
            max(filled, Double(shown.count) * (ShareBar.shortest + ShareBar.gap))
            - ShareBar.gap * Double(shown.count - 1)
        let exact = shown.map { room * Double($0.count) / Double(shown.reduce(0) { $0 + $1.count }) }
        let short = exact.filter { $0 < ShareBar.shortest }
        let lent = short.reduce(0) { $0 + ShareBar.shortest - $1 }
        let long = exact.reduce(0, +) - short.reduce(0, +)
        var x = 0.0
        return zip(shown, exact).map { part, width in
            let width = width < ShareBar.shortest ? ShareBar.shortest : width - lent * width / max(long, 1)
            defer { x += width + ShareBar.gap }
            return (part, x, width)
        }
    }
}
