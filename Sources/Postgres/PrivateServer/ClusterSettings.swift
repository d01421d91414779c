/// headroom.conf: the private PostgreSQL's settings. Rewritten at each start; what an operator sets with ALTER SYSTEM
/// wins over it.
struct ClusterSettings: Sendable {
    static let fileName = "headroom.conf"
    static let includeLine = "include = 'headroom.conf'"

    let socketDirectory: String
    /// What this machine, or the container, has.
    let memoryBytes: Int
    /// For tests; the last setting of a name wins.
    let additional: [(name: String, value: String)]

    /// Modest: the machine is shared with the service itself, and perhaps with much else.
    var text: String {
        var text = """
            # Written by headroom at each start: changes here are lost. Use ALTER SYSTEM, which wins over this file.

            # Reached through the Unix socket only, and that lies in a directory which nobody else can enter: whoever
            # can connect could read the data files as well. That is why pg_hba.conf may say "trust".
            listen_addresses = ''
            port = 5432
            unix_socket_directories = \(quoted("\"" + doubled("\"", in: socketDirectory) + "\""))
            unix_socket_permissions = 0700

            # Two lanes, migrations, a dashboard and some psql for each of several instances. Each slot costs memory.
            max_connections = 50

            # A quarter of the memory, at most 4 GB, which hold the usage rows of ten million users with their index.
            # Memory is taken as pages come into use, so a small service stays small.
            shared_buffers = \(sharedBuffersMegabytes)MB

            # An answer is a promise: no commit is reported before it is on disk, and no page is torn by a power loss.
            fsync = on
            synchronous_commit = on
            full_page_writes = on

            # Each checkpoint makes the next change of every page cost a full page of WAL. The same hot pages change
            # all the time, so checkpoints are kept rare: by 4 GB of WAL or a quarter of an hour, whichever comes first.
            max_wal_size = 4GB
            checkpoint_timeout = 15min

            # While a new file of WAL is filled with zeros, 16 MB of them, every commit waits, 10 to 40 ms. One that is
            # kept from before a checkpoint only gets another name.
            min_wal_size = 1GB

            # A usage row leaves a dead version with each batch. Most go by pruning; vacuum must not be a minute late
            # for the rest.
            autovacuum_naptime = 15s

            # The hot statements take a millisecond; compiling one would take fifty.
            jit = off

            # Billing periods are months in UTC, and the log is read beside the service's.
            timezone = 'UTC'
            log_timezone = 'UTC'

            # One file beside the cluster. In English, without statements' parameters: they name users.
            log_destination = 'stderr'
            logging_collector = off
            log_line_prefix = '%m [%p] %a '
            log_checkpoints = off
            log_lock_waits = on
            log_parameter_max_length = 0
            lc_messages = 'C'

            """
        for (name, value) in additional {
            text += "\(name) = \(quoted(value))\n"
        }
        return text
    }

    private var sharedBuffersMegabytes: Int {
        min(max((memoryBytes / 4) >> 20, 128), 4096)
    }

    private func quoted(_ value: String) -> String {
        "'" + doubled("'", in: value) + "'"
    }

    private func doubled(_ mark: Character, in value: String) -> String {
        value.map { $0 == mark ? "\(mark)\(mark)" : String($0) }.joined()
    }
}
