/// Members in the order in which they joined. Joining, leaving from any place and looking who is first take the same
/// time however many members there are.
struct WaitingLine<Member: Hashable> {
    private struct Neighbours {
        var before: Member?
        var after: Member?
    }

    private(set) var first: Member?
    private var last: Member?
    private var neighbours: [Member: Neighbours] = [:]

    var count: Int { neighbours.count }

    /// Joins at the end. A member that is in the line already keeps its place.
    mutating func join(_ member: Member) {
        guard neighbours[member] == nil else { return }
        neighbours[member] = Neighbours(before: last, after: nil)
        if let last { neighbours[last]?.after = member } else { first = member }
        last = member
    }

    /// Changes nothing where the member is not in the line.
    mutating func leave(_ member: Member) {
        guard let gap = neighbours.removeValue(forKey: member) else { return }
        if let before = gap.before { neighbours[before]?.after = gap.after } else { first = gap.after }
        if let after = gap.after { neighbours[after]?.before = gap.before } else { last = gap.before }
    }
}
