import Testing
@testable import HTTPSide
