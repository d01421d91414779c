import NIOCore

@testable import LineProtocol

/// The same tokens are the same request as a line and as an array; a verb may be in upper or lower case; a decoded
/// command, encoded and decoded again, is the same.
///
/// The input: tokens, each ended by LF.
enum CommandTarget {
    @Sendable
    static func check(_ input: [UInt8]) throws(Violation) {
        let tokens = input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
        let request = try decodeOne(array(tokens))
        if tokens.allSatisfy(isInlineToken), !isBinary(tokens), tokens[0].first != UInt8(ascii: "*") {
            let line = try decodeOne(Array(tokens.joined(separator: [UInt8(ascii: " ")])) + Array("\r\n".utf8))
            try requireEqual(line.kind, request.kind, "a line and an array")
        }
        let otherCase = [tokens[0].map(withOtherCase)] + tokens.dropFirst()
        try requireEqual(try decodeOne(array(otherCase)).kind, request.kind, "a verb in another case")
        for permissions in permissions { try checkThatPermissionsHold(permissions, tokens, request) }
        guard case .command(let command) = request else { return }
        try requireEqual(command.verb.rawValue.utf8.map(\.self), tokens[0].map(inUpperCase), "the verb")
        let again = try decodeOne(command.encoded ?? array(command.exactTokens.map { Array($0.utf8) }))
        try requireEqual(again, request, "encoded and decoded again")
        if case .command(let command2) = again {
            // Equal strings can have different bytes.
            let bytes = { (command: Command) in command.exactTokens.map { Array($0.utf8) } }
            try requireEqual(bytes(command2), bytes(command), "bytes")
        }
    }

    /// Whether the tokens are those of a verb that takes any bytes in an array, and some are bytes that no line may
    /// have.
    private static func isBinary(_ tokens: [[UInt8]]) -> Bool {
        let verb = tokens[0].withUnsafeBytes { Verb($0) }
        return verb?.definition.arguments == .bytes && tokens.contains { $0.withUnsafeBytes { $0.textError != nil } }
    }

    private static let permissions: [Permissions] = [
        .anonymous, Permissions([.chat]), Permissions([.dashboard]), Permissions([.operator]), Permissions([]),
    ]

    /// A request without permission is never a command; a permitted one does not depend on the permissions.
    private static func checkThatPermissionsHold(
        _ permissions: Permissions,
        _ tokens: [[UInt8]],
        _ request: DecodedRequest
    ) throws(Violation) {
        let permitted = try decodeOne(array(tokens), permissions)
        if case .command(let command) = permitted {
            try require(!command.verb.permissions.isDisjoint(with: permissions), "\(command.verb) is not permitted")
        }
        guard case .command(let command) = request else {
            let isCommand = if case .command = permitted { true } else { false }
            return try require(!isCommand, "a request that fails with all permissions is a command with fewer")
        }
        if command.verb.permissions.isDisjoint(with: permissions) {
            let codes = [ReplyError.Code.noAuth, .forbidden]
            guard case .failure(let error) = permitted, codes.contains(error.code) else {
                throw Violation(description: "\(command.verb) was refused with \(permitted)")
            }
        } else if command.verb != .hello || permissions.contains(.authenticated) {
            try requireEqual(permitted, request, "a permitted request")
        }
    }

    /// Decodes the request between two others, so that it is not the first one, and checks that these are unaffected.
    private static func decodeOne(
        _ request: [UInt8],
        _ permissions: Permissions = .all
    ) throws(Violation) -> DecodedRequest {
        var decoder = RequestDecoder()
        decoder.permit(permissions, within: RequestLimits())
        // A verb without arguments that needs no token.
        let neighbour = Array("QUIT\n".utf8)
        var buffer = ByteBuffer(bytes: neighbour + request + neighbour)
        var requests: [DecodedRequest] = []
        while let request = decoder.next(&buffer) { requests.append(request) }
        try requireEqual(requests.first, .command(.quit), "before")
        if requests.count == 2, case .fatal = requests[1] { return requests[1] }
        try requireEqual(requests.count, 3, "requests in \(requests)")
        try requireEqual(requests.last, .command(.quit), "after")
        return requests[1]
    }

    private static func array(_ tokens: [[UInt8]]) -> [UInt8] {
        Array("*\(tokens.count)\r\n".utf8)
            + tokens.flatMap { Array("$\($0.count)\r\n".utf8) + $0 + Array("\r\n".utf8) }
    }

    /// A token with a final CR could not end a line.
    private static func isInlineToken(_ token: [UInt8]) -> Bool {
        let separators = " \t".utf8
        return !token.isEmpty && token.last != UInt8(ascii: "\r") && !token.contains { separators.contains($0) }
    }

    private static func withOtherCase(_ byte: UInt8) -> UInt8 {
        isLetter(byte | 0x20) ? byte ^ 0x20 : byte
    }

    private static func inUpperCase(_ byte: UInt8) -> UInt8 {
        isLetter(byte) ? byte ^ 0x20 : byte
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }
}

extension DecodedRequest {
    /// A request over both limits may fail for either.
    fileprivate var kind: DecodedRequest {
        switch self {
        case .command, .failure: self
        case .fatal(let error): .fatal(ReplyError(code: error.code, text: ""))
        }
    }
}
