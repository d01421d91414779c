import FuzzTargets
import Glibc

/// Runs libFuzzer with one of our targets. libFuzzer's `main` cannot be used, because the package manager gives every
/// program its own entry point; that one calls libFuzzer's documented driver.
@main
enum FuzzDriver {
    /// Chosen by the environment, because libFuzzer parses the command line.
    private static let target: FuzzTarget = {
        let name = getenv("HEADROOM_FUZZ_TARGET").map { String(cString: $0) } ?? ""
        guard let target = FuzzTarget.all.first(where: { $0.name == name }) else {
            let names = FuzzTarget.all.map(\.name).joined(separator: ", ")
            print("HEADROOM_FUZZ_TARGET must be one of \(names); script/fuzz sets it")
            exit(2)
        }
        return target
    }()

    static func main() {
        if CommandLine.arguments.dropFirst() == ["--print-dictionary"] {
            return print(FuzzTarget.dictionaryOfVerbs.joined(separator: "\n"))
        }
        _ = target
        var count = CommandLine.argc
        var arguments = CommandLine.unsafeArgv
        exit(
            runLibFuzzer(&count, &arguments) { start, count in
                do throws(Violation) {
                    try FuzzDriver.target.check(Array(UnsafeBufferPointer(start: start, count: count)))
                } catch {
                    fatalError("\(error)")
                }
                return 0
            }
        )
    }
}

/// `int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*check)(const uint8_t *, size_t))`. C and Swift pass these
/// arguments in the same way.
@_silgen_name("LLVMFuzzerRunDriver")
private func runLibFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ check: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt
