import HTTPTypes
import Hummingbird

/// The methods of each path, for the header Allow of 405 responses.
struct AllowedMethods: Sendable {
    private let paths: [(pattern: [String], methods: [String])]

    init(_ routes: [Router<HTTPContext>.RouteDescription]) {
        var methods: [[String]: Set<String>] = [:]
        for route in routes {
            let pattern = route.path.description.split(separator: "/").map(String.init)
            methods[pattern, default: []].insert(route.method.rawValue)
            // The router answers HEAD for each GET.
            if route.method == .get { methods[pattern, default: []].insert("HEAD") }
        }
        paths = methods.map { ($0.key, $0.value.sorted()) }
    }

    /// - Returns: nil for an unknown path.
    func methods(of path: String) -> [String]? {
        let parts = path.split(separator: "/").map(String.init)
        let found = paths.filter { AllowedMethods.matches($0.pattern, parts) }.flatMap(\.methods)
        return found.isEmpty ? nil : Set(found).sorted()
    }

    private static func matches(_ pattern: [String], _ parts: [String]) -> Bool {
        pattern.count == parts.count
            && zip(pattern, parts).allSatisfy { $0 == $1 || $0.hasPrefix("{") && $0.hasSuffix("}") }
    }
}

extension Problem {
    static func methodNotAllowed(_ methods: [String]) -> Problem {
        Problem(
            .methodNotAllowed,
            code: "BADMETHOD",
            "this path does not support that method; the header Allow lists those that it supports",
            headers: [.allow: methods.joined(separator: ", ")]
        )
    }
}
