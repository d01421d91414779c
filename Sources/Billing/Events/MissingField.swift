/// A genuine event lacks what its effect needs. It is kept all the same.
struct MissingField: Error, CustomStringConvertible {
    let type: String
    let name: String

    var description: String { "\(type) without \(name)" }
}
