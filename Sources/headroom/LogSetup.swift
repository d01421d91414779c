import Logging
import ServiceCore

enum LogSetup {
    /// Logs go to standard error, one line each; standard output has the ready line alone.
    static func start(level: Logger.Level) -> Logger {
        LoggingSystem.bootstrap { LogfmtHandler(label: $0) }
        var logger = Logger(label: "headroom")
        logger.logLevel = level
        return logger
    }
}
