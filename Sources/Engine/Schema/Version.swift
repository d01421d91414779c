/// The version in `INFO`, `HELLO` and `--version`; semantic versioning.
public enum HeadroomVersion {
    public static let current = "0.2.0"
    /// The name of the service in requests that it sends.
    package static let userAgent = "Headroom/\(current)"
}
