/// The extension that distributes a database over several servers.
enum Citus {
    /// The release that this release of Headroom was tested with. 13.2.1, 13.2.2 and 14.0 do not keep the plans of
    /// statements on a worker's own rows, so that each batch is planned anew (github.com/citusdata/citus, issue 8371).
    static let release = "13.2.0"
}
