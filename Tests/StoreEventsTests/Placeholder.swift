import Testing
@testable import StoreEvents
