#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Resources that getrlimit(2) and setrlimit(2) limit. Glibc declares their numbers as a type of its own.
package enum LimitedResource {
    #if canImport(Glibc)
    package static var coreFile: __rlimit_resource_t { .init(RLIMIT_CORE.rawValue) }
    package static var descriptors: __rlimit_resource_t { .init(RLIMIT_NOFILE.rawValue) }
    #else
    package static var coreFile: CInt { RLIMIT_CORE }
    package static var descriptors: CInt { RLIMIT_NOFILE }
    #endif
}
