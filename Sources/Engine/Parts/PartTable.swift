/// A value for each of a user's parts. Nearly all requests of a user in one batch name one or two parts, which are
/// found without a hash.
struct PartTable<Value> {
    private(set) var entries: [(id: PartID, value: Value)] = []
    /// The positions of the ids; empty while there are few.
    private var positions: [PartID: Int] = [:]

    private static var fewMaximum: Int { 8 }

    subscript(id: PartID) -> Value? { position(of: id).map { entries[$0].value } }

    mutating func set(_ value: Value, for id: PartID) {
        if let position = position(of: id) { entries[position].value = value } else { append(value, for: id) }
    }

    private func position(of id: PartID) -> Int? {
        entries.count <= Self.fewMaximum ? entries.firstIndex { $0.id == id } : positions[id]
    }

    private mutating func append(_ value: Value, for id: PartID) {
        entries.append((id, value))
        if entries.count == Self.fewMaximum + 1 {
            for (position, entry) in entries.enumerated() { positions[entry.id] = position }
        } else if entries.count > Self.fewMaximum {
            positions[id] = entries.count - 1
        }
    }
}
