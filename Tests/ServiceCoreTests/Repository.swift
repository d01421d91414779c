import Foundation

/// The files of the repository that tests compare with the code.
enum Repository {
    static let root = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}
