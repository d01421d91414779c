import OperatorConsole
import ServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Standard output of commands. Unlike `print` it throws when nothing can be written, so that `headroom top | head -2`
/// ends.
enum StandardOutput {
    /// Nothing more can be written. The command ends.
    struct Failure: Error, CustomStringConvertible {
        let errorNumber: Int32

        var hasNoReader: Bool { errorNumber == EPIPE }

        var description: String {
            "standard output cannot be written: \(String(cString: strerror(errorNumber))); redirect it elsewhere"
        }
    }

    /// Makes a write to a pipe without a reader an error instead of the end of the process: the command must first stop
    /// a private PostgreSQL that it has started.
    ///
    /// - Returns: whether the signal was ignored before, as some service managers do for their children.
    static func ignorePipeSignal() -> Bool {
        unsafeBitCast(signal(SIGPIPE, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Ends as other programs do: by SIGPIPE, which a shell shows as status 141, or with status 1 if that is ignored.
    static func endWithoutReader(pipeSignalWasIgnored: Bool) -> Never {
        if !pipeSignalWasIgnored {
            signal(SIGPIPE, SIG_DFL)
            raise(SIGPIPE)
        }
        exit(1)
    }

    static func print(_ text: String, terminator: String = "\n") throws(Failure) {
        let number = DescriptorOutput.write(text + terminator, to: STDOUT_FILENO)
        guard number == 0 else { throw Failure(errorNumber: number) }
    }

    /// Prints a list in one write: an object of JSON a line (nothing for no rows), or `text`.
    static func print(list: [some Encodable], asJSON: Bool, else text: @autoclosure () -> String) throws {
        guard asJSON else { return try print(text()) }
        let lines = try list.map { try $0.jsonLine() }
        if !lines.isEmpty { try print(lines.joined(separator: "\n")) }
    }
}
