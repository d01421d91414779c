/// Counts over time, a column each, as SVG. Places across are shares of whatever width the page has, so that columns
/// follow it and letters keep their size; colours are the stylesheet's.
struct ColumnChart {
    struct Column {
        /// Under the axis, where there is room.
        var label: String
        /// In full, where the pointer rests.
        var name: String
        var value: Int
        /// Its time is not over: more may come.
        var isUnfinished = false
        /// What this page is about.
        var isSelected = false
    }

    /// Unique in its page.
    var id: String
    var title: String
    /// What one would say of the chart to somebody who cannot see it.
    var summary: String
    var columns: [Column]

    private static let height = 220.0
    /// Room for half a letter above, and the labels below.
    private static let (top, bottom) = (10.0, 26.0)
    /// Of a letter of the labels, at most.
    private static let letterWidth = 7.2
    /// So many look lost, and too fat, across a whole page.
    private static let fewColumns = 6
    /// How wide the columns are together, at least, at each step of the stylesheet's.
    private static let widths = [("narrow", 250.0), ("medium", 480.0), ("wide", 800.0)]

    /// The numbers, and beside them the columns.
    var svg: String {
        let axis = ValueAxis(upTo: columns.map(\.value).max() ?? 0)
        let numbers = axis.marks.map { mark in
            "<text x=\"100%\" y=\"\(coordinate(y(of: mark, axis)))\" dy=\"4\" text-anchor=\"end\">"
                + "\(NumberText.compact(mark))</text>"
        }
        return """
            <svg class="numbers" height="\(coordinate(ColumnChart.height))" aria-hidden="true">\(numbers.joined())</svg>
            <svg class="columns\(columns.count <= ColumnChart.fewColumns ? " few" : "")" height="\(coordinate(ColumnChart.height))" role="img" \
            aria-labelledby="\(id)-title \(id)-summary">
            <title id="\(id)-title">\(escaped(title))</title>
            <desc id="\(id)-summary">\(escaped(summary))</desc>
            \(axis.marks.map { gridline(at: $0, axis) }.joined())
            \(columns.indices.map { column($0, axis) }.joined(separator: "\n"))
            \(columns.indices.map(label).joined())
            </svg>
            """
    }

    private func gridline(at value: Int, _ axis: ValueAxis) -> String {
        let y = coordinate(y(of: value, axis))
        return "<line class=\"\(value == 0 ? "base" : "grid")\" x1=\"0\" x2=\"100%\" y1=\"\(y)\" y2=\"\(y)\"/>"
    }

    private func column(_ index: Int, _ axis: ValueAxis) -> String {
        let column = columns[index]
        var classes = "column"
        if column.isUnfinished { classes += " unfinished" }
        if column.isSelected { classes += " selected" }
        // One message in a million shows as well.
        let height = column.value == 0 ? 0 : max(1.5, y(of: 0, axis) - y(of: column.value, axis))
        let told =
            "\(column.name): \(NumberText.count(column.value, "message"))" + (column.isUnfinished ? " so far" : "")
        let left = share(of: Double(index))
        let inner = share(of: Double(index) + 0.13)
        return "<g class=\"\(classes)\"><title>\(escaped(told))</title>"
            // Where the pointer may rest: all of the height, not only what is drawn of it.
            + "<rect class=\"touch\" x=\"\(left)\" y=\"\(coordinate(ColumnChart.top))\" width=\"\(share(of: 1))\""
            + " height=\"\(coordinate(y(of: 0, axis) - ColumnChart.top))\"/>"
            + "<rect class=\"value\" x=\"\(inner)\" y=\"\(coordinate(y(of: 0, axis) - height))\""
            + " width=\"\(share(of: 0.74))\" height=\"\(coordinate(height))\" rx=\"2\"/></g>"
    }

    /// As many as fit beside each other, counted from the newest, which is always named.
    private func label(_ index: Int) -> String {
        let fromNewest = columns.count - 1 - index
        let classes = ColumnChart.widths.filter { fromNewest % labelInterval(within: $0.1) == 0 }.map { "at-" + $0.0 }
        guard !classes.isEmpty else { return "" }
        return "<text class=\"label \(classes.joined(separator: " "))\" x=\"\(share(of: Double(index) + 0.5))\""
            + " y=\"\(coordinate(ColumnChart.height - 8))\" text-anchor=\"middle\">"
            + "\(escaped(columns[index].label))</text>"
    }

    private func labelInterval(within width: Double) -> Int {
        let longest = columns.map(\.label.count).max() ?? 0
        let needed = Double(longest + 2) * ColumnChart.letterWidth
        return max(1, Int((needed * Double(columns.count) / width).rounded(.up)))
    }

    private func share(of column: Double) -> String {
        let hundredths = Int((column * 10_000 / Double(max(1, columns.count))).rounded())
        let fraction = hundredths % 100
        return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)%"
    }

    private func y(of value: Int, _ axis: ValueAxis) -> Double {
        let room = ColumnChart.height - ColumnChart.top - ColumnChart.bottom
        return ColumnChart.top + room * (1 - Double(value) / Double(axis.top))
    }
}
