/// The version that `INFO`, `HELLO` and `--version` tell; semantic versioning.
public enum HeadroomVersion {
    public static let current = "0.1.0"
}
