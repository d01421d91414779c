// swift-tools-version: 6.2
import PackageDescription

// What reads bytes that come from outside, and what answers them.
let fuzzedModules: [Target.Dependency] = [
    "HeadroomServer", "LineProtocol", "Usage", "UsageStore", .product(name: "NIOCore", package: "swift-nio"),
]

// Arrows run down only: headroom → HeadroomServer → {LineProtocol, UsageStore} → Usage, and
// UsageStore → Postgres → CLibPQ; LoadGenerator stands alone, OperatorConsole upon LineProtocol. docs/architecture.md
// says what lives where and why.
let package = Package(
    name: "headroom",
    products: [
        .executable(name: "headroom", targets: ["headroom"]),
        .library(name: "HeadroomClient", targets: ["HeadroomClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CLibPQ",
            pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"])]
        ),
        .target(name: "Usage"),
        .target(
            name: "LineProtocol",
            dependencies: [
                "Usage",
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),
        .target(
            name: "Postgres",
            dependencies: [
                "CLibPQ",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Subprocess", package: "swift-subprocess"),
            ]
        ),
        .target(
            name: "UsageStore",
            dependencies: [
                "Postgres",
                "Usage",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            plugins: ["EmbedSQL"]
        ),
        // Certificates as files, and how a client connects with TLS.
        .target(
            name: "TransportSecurity",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
            ]
        ),
        .target(
            name: "HeadroomServer",
            dependencies: [
                "LineProtocol",
                "Postgres",
                "TransportSecurity",
                "Usage",
                "UsageStore",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "NIOTLS", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]
        ),
        // Needs neither libpq nor the service: whoever uses it builds no more than what stands here.
        .target(
            name: "HeadroomClient",
            dependencies: [
                "LineProtocol",
                "TransportSecurity",
                "Usage",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .target(
            name: "StoreEvents",
            dependencies: [
                "Usage",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ]
        ),
        .target(
            name: "HTTPSide",
            dependencies: [
                "HeadroomServer",
                "LineProtocol",
                "Postgres",
                "StoreEvents",
                "Usage",
                "UsageStore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            // docs/openapi.json, so that the binary needs nothing beside it.
            resources: [.embedInCode("API/openapi.json")]
        ),
        .target(
            name: "LoadGenerator",
            dependencies: [
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ]
        ),
        .target(name: "OperatorConsole", dependencies: ["LineProtocol"]),
        .executableTarget(
            name: "headroom",
            dependencies: [
                "HTTPSide",
                "HeadroomServer",
                "LineProtocol",
                "LoadGenerator",
                "OperatorConsole",
                "Postgres",
                "StoreEvents",
                "TransportSecurity",
                "Usage",
                "UsageStore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ]
        ),
        // A chat that anyone can open in a browser: what a product builds on HeadroomClient.
        .executableTarget(
            name: "chat-backend",
            dependencies: [
                "HeadroomClient",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            path: "Examples/ChatBackend",
            exclude: ["Demo", "README.md"],
            // The page, so that the program needs nothing beside it.
            resources: [.embedInCode("Page")]
        ),
        // sql/*.sql become constants in UsageStore, so that the binary needs nothing beside it.
        .executableTarget(name: "embed-sql", path: "Plugins/embed-sql"),
        .plugin(name: "EmbedSQL", capability: .buildTool(), dependencies: ["embed-sql"]),
        .testTarget(name: "UsageTests", dependencies: ["Usage"]),
        .testTarget(name: "LineProtocolTests", dependencies: ["LineProtocol", "Usage"]),
        .target(
            name: "PostgresTestSupport",
            dependencies: [
                "Postgres",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/PostgresTestSupport"
        ),
        .testTarget(name: "EmbedSQLTests", dependencies: ["embed-sql"]),
        .testTarget(
            name: "PostgresTests",
            dependencies: [
                "Postgres", "PostgresTestSupport",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .testTarget(
            name: "UsageStoreTests",
            dependencies: [
                "Postgres", "PostgresTestSupport", "Usage", "UsageStore",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .testTarget(
            name: "HeadroomServerTests",
            dependencies: [
                "HeadroomServer", "LineProtocol", "Usage", "UsageStore",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]
        ),
        // The built service as a process, for tests of who asks it.
        .target(
            name: "ServiceTestSupport",
            dependencies: ["HeadroomClient", "PostgresTestSupport"],
            path: "Tests/ServiceTestSupport"
        ),
        .testTarget(
            name: "ChatBackendTests",
            dependencies: [
                "HeadroomClient", "Postgres", "PostgresTestSupport", "ServiceTestSupport", "Usage", "chat-backend",
                "headroom",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .testTarget(
            name: "HeadroomClientTests",
            dependencies: [
                "HeadroomClient", "LineProtocol", "PostgresTestSupport", "ServiceTestSupport", "Usage", "headroom",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        // The fuzzers' bodies, over the corpus that they have gathered; fuzzing itself is at the end of this file.
        .testTarget(
            name: "FuzzTests",
            dependencies: fuzzedModules,
            path: "Fuzz",
            exclude: ["Corpus", "Driver", "Found", "README.md", "dictionary.txt"],
            sources: ["Bodies", "Tests"]
        ),
        .testTarget(
            name: "StoreEventsTests",
            dependencies: [
                "StoreEvents", "Usage",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ]
        ),
        .testTarget(
            name: "HTTPSideTests",
            dependencies: [
                "HTTPSide", "HeadroomServer", "LineProtocol", "Postgres", "PostgresTestSupport", "StoreEvents", "Usage",
                "UsageStore",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdTesting", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Mustache", package: "swift-mustache"),
                .product(name: "SwiftASN1", package: "swift-asn1"),
                .product(name: "X509", package: "swift-certificates"),
            ]
        ),
        .testTarget(name: "OperatorConsoleTests", dependencies: ["LineProtocol", "OperatorConsole"]),
        .testTarget(
            name: "LoadGeneratorTests",
            dependencies: [
                "LoadGenerator",
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)

// A warning stops a debug build, so tests and CI hold the line; a release build goes on, because somebody who only
// wants to run the service may have a newer compiler than we had. A deprecation stays a warning: it comes with the
// update of a dependency, not with a change here, and script/lint reports it.
for target in package.targets where [.regular, .executable, .test].contains(target.type) {
    target.swiftSettings = [
        .treatAllWarnings(as: .error, .when(configuration: .debug)),
        .treatWarning("DeprecatedDeclaration", as: .warning, .when(configuration: .debug)),
    ]
}

// The microbenchmarks (Benchmarks/micro/README.md) are there only when asked for, so that nobody who builds the service
// fetches or compiles anything for them: `counts` adds the bodies and their counter, `times` also ordo-one/benchmark.
// They reach internals as tests do, so that nothing is declared otherwise for their sake.
let benchmarks = Context.environment["HEADROOM_BENCHMARKS"]
if benchmarks != nil {
    for target in package.targets where target.type == .regular {
        target.swiftSettings?.append(.unsafeFlags(["-enable-testing"], .when(configuration: .release)))
    }
    package.targets += [
        .target(name: "CMeasuredRegion", path: "Benchmarks/micro/CMeasuredRegion"),
        .target(
            name: "HotPath",
            dependencies: [
                "CLibPQ", "CMeasuredRegion", "HeadroomServer", "LineProtocol", "Postgres", "Usage", "UsageStore",
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            path: "Benchmarks/micro/HotPath",
            swiftSettings: [
                .treatAllWarnings(as: .error),
                // What the bodies capture would be checked at each access, which is no cost of the service's.
                .unsafeFlags(["-enforce-exclusivity=unchecked"]),
            ]
        ),
        .executableTarget(
            name: "hot-path-counts",
            dependencies: ["CMeasuredRegion", "HotPath"],
            path: "Benchmarks/micro/Counts",
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
        .executableTarget(
            name: "client-load",
            dependencies: ["CMeasuredRegion", "HeadroomClient"],
            path: "Benchmarks/client",
            swiftSettings: [.treatAllWarnings(as: .error)]
        ),
    ]
}
if benchmarks == "times" {
    // Without its traits it needs no package that replaces malloc: CMeasuredRegion counts for both.
    package.dependencies.append(.package(url: "https://github.com/ordo-one/benchmark", from: "1.38.1", traits: []))
    package.targets.append(
        .executableTarget(
            name: "hot-path-times",
            dependencies: ["CMeasuredRegion", "HotPath", .product(name: "Benchmark", package: "benchmark")],
            // Its plugin takes targets from a folder of the name Benchmarks only.
            path: "Benchmarks/micro-times",
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        )
    )
}

// The fuzzers (Fuzz/README.md) are there only when asked for, and our own modules are then instrumented: with counters
// of their edges, which libFuzzer looks for new ways by, and, with `address`, with checks of each access to memory.
// Assertions hold as in a debug build. The bodies become a module of their own, in place of their test.
if let fuzz = Context.environment["HEADROOM_FUZZ"] {
    let sanitizers = fuzz == "address" ? "-sanitize=fuzzer,address" : "-sanitize=fuzzer"
    let instrumented: [SwiftSetting] = [
        .unsafeFlags([sanitizers, "-enable-testing", "-assert-config", "Debug"], .when(configuration: .release))
    ]
    for target in package.targets where ["HeadroomServer", "LineProtocol", "Usage"].contains(target.name) {
        target.swiftSettings? += instrumented
    }
    package.targets.removeAll { $0.name == "FuzzTests" }
    package.targets += [
        .target(
            name: "FuzzBodies",
            dependencies: fuzzedModules,
            path: "Fuzz/Bodies",
            swiftSettings: [.treatAllWarnings(as: .error)] + instrumented
        ),
        .executableTarget(
            name: "headroom-fuzz",
            dependencies: ["FuzzBodies"],
            path: "Fuzz/Driver",
            swiftSettings: [.treatAllWarnings(as: .error), .unsafeFlags([sanitizers, "-parse-as-library"])],
            linkerSettings: [.unsafeFlags([sanitizers, "-use-ld=lld"])]
        ),
    ]
}
