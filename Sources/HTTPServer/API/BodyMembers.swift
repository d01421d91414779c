import JSON
import NIOCore

extension JSONValue {
    /// The members of a request's body, which must be an object.
    ///
    /// - Parameter names: the members that the path takes.
    /// - Throws: 400.
    static func members(of body: ByteBuffer, named names: [String]) throws(Problem) -> [String: JSONValue] {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: Array(body.readableBytesView))
        } catch {
            throw Problem(error)
        }
        guard case .object(let members) = value else { throw .badArgument("the body must be a JSON object") }
        guard members.keys.allSatisfy(names.contains) else {
            let known = names.isEmpty ? "none" : names.joined(separator: ", ")
            throw .badArgument("unknown member in the body; this path takes \(known)")
        }
        return members
    }
}

extension Problem {
    fileprivate init(_ error: JSONError) {
        switch error.kind {
        case .malformed: self.init(.badRequest, code: "BADREQUEST", "the body \(error)")
        case .encoding: self.init(.unsupportedMediaType, code: "BADENCODING", "the body \(error)")
        case .tooLarge: self.init(.contentTooLarge, code: "TOOLONG", "the body \(error)")
        }
    }
}
