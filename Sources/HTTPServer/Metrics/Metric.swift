/// A family of metrics on `/metrics`, declared once: what it is and how its samples are read. A test compares
/// docs/reference/metrics.md with these.
struct Metric: Sendable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    /// The values of the family's labels, in their order, and the number or histogram for these.
    typealias Sample = (labels: [String], value: any SampleValue)

    let name: String
    let kind: Kind
    /// The label names of each sample, in order.
    let labels: [String]
    /// The text after HELP.
    let meaning: String
    /// Reads the samples. A family without samples is left out.
    let samples: @Sendable (MetricsSnapshot) -> [Sample]

    /// A family with one sample per combination of label values.
    init(
        _ name: String,
        _ kind: Kind,
        _ labels: [String],
        _ meaning: String,
        samples: @escaping @Sendable (MetricsSnapshot) -> [Sample]
    ) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.meaning = meaning
        self.samples = samples
    }

    /// A family without labels, left out while its value is nil.
    init(
        _ name: String,
        _ kind: Kind,
        _ meaning: String,
        value: @escaping @Sendable (MetricsSnapshot) -> (any SampleValue)?
    ) {
        self.init(name, kind, [], meaning) { snapshot in value(snapshot).map { [([], $0)] } ?? [] }
    }

    /// `/metrics` has the families in this order.
    static let all = service + lineProtocol + engine + database + http + notifications + tracing + process
}
