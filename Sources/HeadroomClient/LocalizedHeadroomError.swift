import Foundation

/// Without this, `localizedDescription` is "The operation could not be completed".
extension HeadroomError: LocalizedError {
    public var errorDescription: String? { description }
}
