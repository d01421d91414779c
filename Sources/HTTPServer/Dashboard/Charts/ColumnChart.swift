/// Counts over time as columns, in SVG. Horizontal positions are percentages, so that columns scale with the page and
/// letters keep their size. Colours come from the stylesheet.
struct ColumnChart {
    struct Column {
        /// Below the axis, if there is room.
        var label: String
        /// The full name, for the tooltip.
        var name: String
        var value: Int
        /// The day or period has not ended.
        var isUnfinished = false
        /// The period that the page shows.
        var isSelected = false
    }

    /// Unique on its page.
    var id: String
    var title: String
    /// A description for screen readers.
    var summary: String
    var columns: [Column]

    private static let height = 220.0
    /// Margins: half a letter above, the labels below.
    private static let (top, bottom) = (10.0, 26.0)
    /// Of a label, at most.
    private static let letterWidth = 7.2
    /// Up to this number, the chart is narrower than the page, so that columns are not too wide.
    private static let fewColumns = 6
    /// The minimum width of all columns for each of the stylesheet's page widths.
    private static let widths = [("narrow", 250.0), ("medium", 480.0), ("wide", 800.0)]

    /// Two elements: the axis's numbers, and the columns beside them.
    var svg: String {
        let axis = ValueAxis(upTo: columns.map(\.value).max() ?? 0)
        let numbers = axis.marks.map { mark in
            "<text x=\"100%\" y=\"\(coordinate(y(of: mark, axis)))\" dy=\"4\" text-anchor=\"end\">"
                + "\(NumberText.compact(mark))</text>"
        }
        let height = coordinate(ColumnChart.height)
        let width = columns.count <= ColumnChart.fewColumns ? " few" : ""
        return """
            <svg class="numbers" height="\(height)" aria-hidden="true">\(numbers.joined())</svg>
            <svg class="columns\(width)" height="\(height)" role="img" \
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
        // A nonzero column has a visible height.
        let height = column.value == 0 ? 0 : max(1.5, y(of: 0, axis) - y(of: column.value, axis))
        let tooltip =
            "\(column.name): \(NumberText.count(column.value, "message"))" + (column.isUnfinished ? " so far" : "")
        let left = share(of: Double(index))
        let inner = share(of: Double(index) + 0.13)
        return "<g class=\"\(classes)\"><title>\(escaped(tooltip))</title>"
            // The tooltip's area has the full height.
            + "<rect class=\"touch\" x=\"\(left)\" y=\"\(coordinate(ColumnChart.top))\" width=\"\(share(of: 1))\""
            + " height=\"\(coordinate(y(of: 0, axis) - ColumnChart.top))\"/>"
            + "<rect class=\"value\" x=\"\(inner)\" y=\"\(coordinate(y(of: 0, axis) - height))\""
            + " width=\"\(share(of: 0.74))\" height=\"\(coordinate(height))\" rx=\"2\"/></g>"
    }

    /// Every nth column has a label, counted from the newest, so that labels do not overlap.
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
