/// headroom.conf: the private PostgreSQL's settings. It is rewritten at each start; settings by ALTER SYSTEM override
/// it.
struct ClusterSettings: Sendable {
    static let fileName = "headroom.conf"
    static let includeLine = "include = 'headroom.conf'"

    let socketDirectory: String
    /// The memory of the machine, or of the container.
    let memoryBytes: Int
    /// Settings for tests. The last setting of a name wins.
    let additional: [(name: String, value: String)]

    /// The text of the file. It requests little memory, because the server shares the machine with the service and
    /// perhaps with others.
    var text: String {
        var text = """
            # Written by headroom at each start: changes here are lost. Use ALTER SYSTEM, which wins over this file.

            # Only the Unix socket, in a directory that no other account of the machine can enter: one that can connect
            # could also read the data files. So "trust" in pg_hba.conf is safe.
            listen_addresses = ''
            port = 5432
            unix_socket_directories = \(quoted("\"" + doubled("\"", in: socketDirectory) + "\""))
            unix_socket_permissions = 0700

            # For several instances with two lanes each, and for migrations, a dashboard and psql. Each slot costs
            # memory.
            max_connections = 50

            # A quarter of the memory, at most 4 GB: enough for the usage rows of ten million users and their index.
            # Pages take memory only once used, so a small service stays small.
            shared_buffers = \(sharedBuffersMegabytes)MB

            # An answer is a promise: a commit is on disk before it is reported, and a power loss tears no page.
            fsync = on
            synchronous_commit = on
            full_page_writes = on

            # Each checkpoint makes the next change of every page cost a full page of WAL. The same hot pages change
            # all the time, so checkpoints are kept rare: by 4 GB of WAL or a quarter of an hour, whichever comes first.
            max_wal_size = 4GB
            checkpoint_timeout = 15min

            # Commits wait 10 to 40 ms while a new WAL file of 16 MB is filled with zeros. A file that is kept from before
            # a checkpoint is only renamed.
            min_wal_size = 1GB

            # Each batch leaves a dead version of each of its usage rows. Pruning removes most; vacuum must remove the
            # rest within a minute.
            autovacuum_naptime = 15s

            # The hot statements take a millisecond; compiling one would take fifty.
            jit = off

            # Billing periods are in UTC, and so are the times of the service's own log.
            timezone = 'UTC'
            log_timezone = 'UTC'

            # One file beside the cluster, in English, without statement parameters, because these name users.
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
