/// Why a genuine event has no effect yet. It is kept all the same, with this as its problem.
protocol TranslationProblem: Error, CustomStringConvertible {}

/// A genuine event lacks what its effect needs.
struct MissingField: TranslationProblem {
    let type: String
    let name: String

    var description: String { "\(type) without \(name)" }
}

extension BillingEvent {
    /// Takes over what a translation says, or the problem that it found.
    ///
    /// - Parameter translation: throws a `TranslationProblem`, or a `BillingError`, and nothing else.
    mutating func translate(_ translation: (inout BillingEvent) throws -> Void) throws(BillingError) {
        do {
            try translation(&self)
        } catch let problem as any TranslationProblem {
            self.problem = "\(problem)"
        } catch let error as BillingError {
            throw error
        } catch {
            preconditionFailure("a translation throws nothing else: \(error)")
        }
    }
}
