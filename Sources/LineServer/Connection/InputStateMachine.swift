import ServiceCore

/// When a connection reads from its socket, and when it decodes what it has read. Does no I/O; `LineConnectionHandler`
/// executes what it returns.
///
/// Reading pauses while requests cannot be decoded, so that a connection's memory is bounded whatever its peer sends.
struct InputStateMachine {
    private enum State {
        /// The connection is not admitted yet, or refused: received bytes are dropped. Can transition to: decoding,
        /// discarding.
        case notAdmitted
        /// Received bytes are decoded at once. A read that was requested while they could not be is pending.
        /// Can transition to: waitingForTurn, discarding.
        case decoding(readIsPending: Bool)
        /// Received bytes are kept until the connection's turn in the `TurnQueue`; nothing more is read.
        /// Can transition to: decoding, discarding.
        case waitingForTurn(readIsPending: Bool)
        /// Final. The last reply is written. Reading continues, because the kernel answers unread bytes with a reset,
        /// which may destroy the replies before the peer has read them. What is read is dropped.
        case discarding(bytes: Int)
    }

    private var state = State.notAdmitted
    /// The peer has closed its side: no more bytes follow.
    private(set) var isClosed = false

    var isDecoding: Bool { if case .decoding = state { true } else { false } }
    var isDiscarding: Bool { if case .discarding = state { true } else { false } }

    mutating func admit() {
        guard case .notAdmitted = state else { return }
        state = .decoding(readIsPending: false)
    }

    // MARK: Reading

    /// A read was requested.
    ///
    /// - Parameter canDecode: whether requests can be executed and their replies be sent.
    /// - Returns: whether to read now. Else the read is pending until `resumeRead`.
    mutating func read(canDecode: Bool) -> Bool {
        switch state {
        case .notAdmitted, .discarding: return true
        case .decoding:
            if canDecode { return true }
            state = .decoding(readIsPending: true)
        case .waitingForTurn: state = .waitingForTurn(readIsPending: true)
        }
        return false
    }

    /// Returns whether a read was pending and can continue now.
    mutating func resumeRead(canDecode: Bool) -> Bool {
        guard canDecode, case .decoding(readIsPending: true) = state else { return false }
        state = .decoding(readIsPending: false)
        return true
    }

    enum ReceivedAction: Equatable {
        /// Append the bytes to those that are not decoded yet, and decode.
        case decode
        /// Append the bytes, and do not decode.
        case keep
        case drop
        /// The peer continues to send after the last reply: close the connection.
        case close
    }

    mutating func received(bytes: Int) -> ReceivedAction {
        switch state {
        case .notAdmitted: return .drop
        case .decoding: return .decode
        case .waitingForTurn: return .keep
        case .discarding(let before):
            state = .discarding(bytes: before + bytes)
            return before + bytes > ConnectionLimits.discardedBytesMaximum ? .close : .drop
        }
    }

    /// The peer has closed its side. Returns whether to decode what is left.
    mutating func closed() -> Bool {
        isClosed = true
        return isDecoding
    }

    // MARK: Turns

    mutating func waitForTurn() {
        guard case .decoding(let readIsPending) = state else { return }
        state = .waitingForTurn(readIsPending: readIsPending)
    }

    /// The connection's turn has come. Returns false when it has nothing to decode any more.
    mutating func takeTurn() -> Bool {
        guard case .waitingForTurn(let readIsPending) = state else { return false }
        state = .decoding(readIsPending: readIsPending)
        return true
    }

    // MARK: End

    /// The last reply is written, or the connection is refused. Returns whether a read was pending; it must continue
    /// now.
    mutating func discard() -> Bool {
        defer { if !isDiscarding { state = .discarding(bytes: 0) } }
        switch state {
        case .decoding(let readIsPending), .waitingForTurn(let readIsPending): return readIsPending
        case .notAdmitted, .discarding: return false
        }
    }
}
