import Foundation

/// Without it `localizedDescription` is "The operation could not be completed", which does not help the reader of a log.
extension HeadroomError: LocalizedError {
    public var errorDescription: String? { description }
}
