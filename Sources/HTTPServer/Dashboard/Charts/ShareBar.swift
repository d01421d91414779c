/// Parts of a whole as one horizontal bar, in SVG. It has no letters; a table or a text beside it has the numbers.
struct ShareBar {
    struct Part {
        /// A class of the stylesheet.
        var name: String
        var count: Int
    }

    var id: String
    var title: String
    var summary: String
    var parts: [Part]
    /// Nil: the sum of the parts.
    var whole: Int?
    /// Positions of vertical lines, as counts.
    var marks: [Int] = []

    private static let length = 1_000.0
    private static let height = 24.0
    /// Nonzero parts get a minimum width.
    private static let minimumWidth = 6.0
    private static let gap = 3.0

    var svg: String {
        let shapes = rectangles.map { part, x, width in
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
            + " height=\"\(coordinate(ShareBar.height))\"/>" + shapes.joined() + lines.joined() + "</svg>"
    }

    private var total: Int { max(whole ?? 0, parts.reduce(0) { $0 + $1.count }) }

    /// Widths in proportion to counts, except that narrow parts get the minimum width at the expense of the others.
    private var rectangles: [(part: Part, x: Double, width: Double)] {
        let shown = parts.filter { $0.count > 0 }
        guard total > 0, !shown.isEmpty else { return [] }
        let filled = ShareBar.length * Double(shown.reduce(0) { $0 + $1.count }) / Double(total)
        let room =
            max(filled, Double(shown.count) * (ShareBar.minimumWidth + ShareBar.gap))
            - ShareBar.gap * Double(shown.count - 1)
        let exact = shown.map { room * Double($0.count) / Double(shown.reduce(0) { $0 + $1.count }) }
        let narrow = exact.filter { $0 < ShareBar.minimumWidth }
        let missing = narrow.reduce(0) { $0 + ShareBar.minimumWidth - $1 }
        let wide = exact.reduce(0, +) - narrow.reduce(0, +)
        var x = 0.0
        return zip(shown, exact).map { part, width in
            let width = width < ShareBar.minimumWidth ? ShareBar.minimumWidth : width - missing * width / max(wide, 1)
            defer { x += width + ShareBar.gap }
            return (part, x, width)
        }
    }
}
