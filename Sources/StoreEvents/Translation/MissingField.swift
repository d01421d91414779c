import Billing

/// Why a genuine event could not be translated. It is stored with this problem.
protocol TranslationProblem: Error, CustomStringConvertible {}

/// A genuine event lacks a field that its effect needs.
struct MissingField: TranslationProblem {
    let type: String
    let name: String

    var description: String { "\(type) without \(name)" }
}

extension BillingEvent {
    /// Runs a translation, and records the problem if it throws one.
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
