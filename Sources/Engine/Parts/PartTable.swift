/// A value for each of a user's parts. Nearly all requests of a user in one batch name one or two parts, which are
/// found without a hash.
struct PartTable<Value> {
    private(set) var ids: [PartID] = []
    private(set) var values: [Value] = []
    /// The positions of the ids; empty while there are few.
    private var positions: [PartID: Int] = [:]

    private static var fewMaximum: Int { 8 }

    subscript(id: PartID) -> Value? { position(of: id).map { values[$0] } }

    mutating func set(_ value: Value, for id: PartID) {
        if let position = position(of: id) { values[position] = value } else { append(value, for: id) }
    }

    private func position(of id: PartID) -> Int? {
        ids.count <= Self.fewMaximum ? ids.firstIndex(of: id) : positions[id]
    }

    private mutating func append(_ value: Value, for id: PartID) {
        ids.append(id)
        values.append(value)
        if ids.count == Self.fewMaximum + 1 {
            for (position, id) in ids.enumerated() { positions[id] = position }
        } else if ids.count > Self.fewMaximum {
            positions[id] = ids.count - 1
        }
    }
}
