import Testing

@testable import LineServer
@testable import ServiceCore

@Suite("A connection's input")
struct InputStateMachineTests {
    private func admitted() -> InputStateMachine {
        var input = InputStateMachine()
        input.admit()
        return input
    }

    @Test("is read and dropped before the connection is admitted")
    func notAdmitted() {
        var input = InputStateMachine()
        #expect(input.read(canDecode: false) == true)
        #expect(input.received(bytes: 10) == .drop)
        #expect(!input.isDecoding && !input.isDiscarding)
        #expect(input.closed() == false)
        #expect(input.isClosed)
    }

    @Test("is decoded as it is received, and read while it can be decoded")
    func decoding() {
        var input = admitted()
        #expect(input.read(canDecode: true) == true)
        #expect(input.received(bytes: 10) == .decode)
        #expect(input.resumeRead(canDecode: true) == false, "no read is pending")
        #expect(input.read(canDecode: false) == false)
        #expect(input.resumeRead(canDecode: false) == false)
        #expect(input.resumeRead(canDecode: true) == true)
        #expect(input.resumeRead(canDecode: true) == false, "once")
        #expect(input.closed() == true)
        #expect(input.isClosed)
    }

    @Test("is kept, and not read, until the connection's turn")
    func turns() {
        var input = admitted()
        input.waitForTurn()
        #expect(!input.isDecoding)
        #expect(input.received(bytes: 10) == .keep)
        #expect(input.read(canDecode: true) == false)
        #expect(input.resumeRead(canDecode: true) == false)
        #expect(input.closed() == false, "what is left is decoded in the turn")
        #expect(input.takeTurn() == true)
        #expect(input.isDecoding)
        #expect(input.takeTurn() == false)
        #expect(input.resumeRead(canDecode: true) == true, "the read of before the turn")
    }

    @Test("is read and dropped after the last reply, up to a limit")
    func discarding() {
        var input = admitted()
        #expect(input.read(canDecode: false) == false)
        #expect(input.discard() == true, "a read was pending")
        #expect(input.discard() == false)
        #expect(input.isDiscarding)
        #expect(input.read(canDecode: false) == true)
        #expect(input.received(bytes: ConnectionLimits.discardedBytesMaximum) == .drop)
        #expect(input.received(bytes: 1) == .close)
        #expect(input.resumeRead(canDecode: true) == false)
        #expect(input.closed() == false)
        #expect(input.isClosed)
    }

    @Test("is dropped when the last reply comes before the connection's turn")
    func discardingBeforeTheTurn() {
        var input = admitted()
        #expect(input.read(canDecode: false) == false)
        input.waitForTurn()
        #expect(input.discard() == true)
        #expect(input.takeTurn() == false)
        input.waitForTurn()
        #expect(input.isDiscarding)
    }

    @Test("of a refused connection is dropped, up to the same limit")
    func refused() {
        var input = InputStateMachine()
        #expect(input.discard() == false, "no read was pending")
        input.admit()
        #expect(input.isDiscarding)
        #expect(input.received(bytes: ConnectionLimits.discardedBytesMaximum + 1) == .close)
    }
}
