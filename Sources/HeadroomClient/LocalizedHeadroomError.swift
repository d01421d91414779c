import Foundation

/// Without it `localizedDescription` is "The operation could not be completed", which helps nobody who reads a log.
extension HeadroomError: LocalizedError {
    public var errorDescription: String? { description }
}
