import HeadroomServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What a command prints. Unlike `print` it reports when nothing can be written, so that `headroom top | head -2` ends.
enum StandardOutput {
    /// Nothing more can be written; the command ends.
    struct Failure: Error, CustomStringConvertible {
        let errorNumber: Int32

        var readerIsGone: Bool { errorNumber == EPIPE }

        var description: String {
            "standard output cannot be written: \(String(cString: strerror(errorNumber))); print to another place"
        }
    }

    /// A write to a pipe without a reader is an error from now on, and not the end of the process: a private PostgreSQL
    /// that the command has started must be stopped first.
    ///
    /// - Returns: whether it was ignored before, as some services do for what they start.
    static func ignorePipeSignal() -> Bool {
        unsafeBitCast(signal(SIGPIPE, SIG_IGN), to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Ends as other programs do: by SIGPIPE, which a shell shows as status 141, or with status 1 where that is ignored.
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

    /// A line each, in one write.
    static func print(lines: [String]) throws(Failure) {
        if !lines.isEmpty { try print(lines.joined(separator: "\n")) }
    }
}
