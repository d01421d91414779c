/// The version in `INFO`, `HELLO` and `--version`; semantic versioning.
public enum HeadroomVersion {
    public static let current = "0.2.0"
    /// In requests that the service sends.
    package static let userAgent = "Headroom/\(current)"
}
