import LineProtocol
import Logging

/// The settings that every command on the database takes.
package struct DatabaseSettings: SettingGroup {
    package let url = Setting("database-url", .secret("libpq connection string or URI")) {
        "the database, PostgreSQL 14 or later. If neither this nor DATABASE_URL is set, a private PostgreSQL is "
            + "started in data-dir. Set a password by the variable or a passfile, not by the flag"
    }
    package let dataDirectory = Setting("data-dir", default: ".headroom", .text("path")) {
        "the directory of the private PostgreSQL's data"
    }
    package let logLevel = Setting<Logger.Level>("log-level", default: "info", .cases) {
        "the lowest level of log messages, on standard error; warning by default for commands other than serve. Above "
            + "debug, nothing is logged for each request"
    }
}
