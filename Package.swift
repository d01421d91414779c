// swift-tools-version: 6.2
import PackageDescription

// Products that many targets use.
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let asyncHTTPClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let dequeModule: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let inMemoryTracing: Target.Dependency = .product(name: "InMemoryTracing", package: "swift-distributed-tracing")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let serviceLifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")

// The service is built from exactly these versions, which were tested; script/build and script/release say that it is
// the service. A package that depends on HeadroomClient may have newer ones.
func dependency(_ repository: String, _ version: Version) -> Package.Dependency {
    let isService = Context.environment["HEADROOM_FLAVOUR"] != nil || Context.environment["HEADROOM_COMMIT"] != nil
    let url = "https://github.com/\(repository)"
    return isService ? .package(url: url, exact: version) : .package(url: url, from: version)
}

// What reads bytes that come from outside, and what answers them.
let fuzzedModules: [Target.Dependency] = [
    "Billing", "Engine", "JSON", "LineProtocol", "LineServer", "ServiceCore", "StoreEvents", "Usage", nioCore,
]

// Arrows run down only: headroom → {LineServer, HTTPServer, Notifications, TraceExport} → ServiceCore → {LineProtocol,
// Engine} → Usage, and Engine → {Postgres → CLibPQ, Billing → {JSON, Usage}}, HTTPServer → StoreEvents → Billing,
// {Notifications, TraceExport} → OutgoingHTTP. LineClient, LoadGenerator and OutgoingHTTP stand upon TransportSecurity,
// OperatorConsole upon LineProtocol.
// docs/contributors/architecture.md says what lives where and why.
let package = Package(
    name: "headroom",
    // Of which the module Synchronization is a part; not tried, docs/macos.md.
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "headroom", targets: ["headroom"]),
        .library(name: "HeadroomClient", targets: ["HeadroomClient"]),
    ],
    // What a package that depends on HeadroomClient chooses from; docs/client-library.md has what each costs. All of it
    // by default, so that a plain `swift build` here builds the service.
    traits: [
        .default(enabledTraits: ["Server"]),
        .trait(name: "ServiceLifecycle", description: "HeadroomClient is a Service of swift-service-lifecycle"),
        .trait(name: "TLS", description: "HeadroomClient connects with TLS"),
        .trait(
            name: "Server",
            description: "The service, its command, the example and the tests",
            enabledTraits: ["ServiceLifecycle", "TLS"]
        ),
    ],
    dependencies: [
        dependency("HdrHistogram/hdrhistogram-swift", "0.2.0"),
        dependency("apple/swift-argument-parser", "1.8.2"),
        dependency("apple/swift-asn1", "1.7.4"),
        dependency("apple/swift-certificates", "1.21.1"),
        dependency("apple/swift-collections", "1.6.0"),
        dependency("apple/swift-configuration", "1.4.0"),
        dependency("apple/swift-crypto", "4.5.2"),
        dependency("apple/swift-distributed-tracing", "1.7.3"),
        dependency("apple/swift-http-types", "1.8.0"),
        dependency("apple/swift-log", "1.16.2"),
        dependency("apple/swift-metrics", "2.13.0"),
        dependency("apple/swift-nio", "2.101.2"),
        dependency("apple/swift-nio-extras", "1.35.2"),
        dependency("apple/swift-nio-http2", "1.46.0"),
        dependency("apple/swift-nio-ssl", "2.37.6"),
        dependency("hummingbird-project/hummingbird", "2.28.1"),
        dependency("hummingbird-project/swift-mustache", "2.1.1"),
        dependency("swift-server/async-http-client", "1.37.0"),
        dependency("swift-server/swift-service-lifecycle", "2.13.0"),
        dependency("swiftlang/swift-subprocess", "1.0.2"),
    ],
    targets: [
        .systemLibrary(
            name: "CLibPQ",
            pkgConfig: "libpq",
            providers: [.apt(["libpq-dev"]), .brew(["libpq"])]
        ),
        .target(name: "Usage", plugins: ["EmbedTexts"]),
        .target(name: "LineProtocol", dependencies: ["Usage", nioCore]),
        .target(
            name: "Postgres",
            dependencies: [
                "CLibPQ", logging,
                .product(name: "Subprocess", package: "swift-subprocess"),
            ]
        ),
        .target(
            name: "Engine",
            dependencies: [
                "Billing", "JSON", "Postgres", "Usage", dequeModule, logging, tracing,
            ],
            plugins: ["EmbedSQL"]
        ),
        // Why a connection fails; with the trait TLS also certificates as files, and how a client connects with TLS.
        .target(
            name: "TransportSecurity",
            dependencies: [
                nioCore, nioPosix, nioSSL,
                .product(name: "NIOTLS", package: "swift-nio"),
            ]
        ),
        // What both ports stand upon: settings, access, metrics, start and end of the service.
        .target(
            name: "ServiceCore",
            dependencies: [
                "LineProtocol", "Postgres", "TransportSecurity", "Usage", "Engine",
                .product(name: "Configuration", package: "swift-configuration"),
                crypto, logging, nioCore, nioPosix, nioSSL, serviceLifecycle, tracing, unixSignals,
            ]
        ),
        .target(
            name: "LineServer",
            dependencies: [
                "Engine", "LineProtocol", "ServiceCore", "TransportSecurity", "Usage", dequeModule, logging, nioCore,
                nioPosix, nioSSL,
                .product(name: "NIOTLS", package: "swift-nio"),
                serviceLifecycle,
            ]
        ),
        // The connection of commands such as `headroom ask` to a running service.
        .target(
            name: "LineClient",
            dependencies: [
                "LineProtocol", "TransportSecurity", dequeModule, nioCore, nioPosix,
            ]
        ),
        // Needs neither libpq nor the service: whoever uses it builds no more than what stands here.
        .target(
            name: "HeadroomClient",
            dependencies: [
                "LineProtocol", "TransportSecurity", "Usage", dequeModule, logging,
                .product(name: "Metrics", package: "swift-metrics"),
                nioCore, nioPosix, serviceLifecycle,
            ]
        ),
        // JSON of any sender, parsed within limits.
        .target(name: "JSON"),
        .target(name: "Billing", dependencies: ["JSON", "Usage"]),
        // Billing events as stores send them: their signatures, and their translation.
        .target(name: "StoreEvents", dependencies: ["Billing", "JSON", "Usage", crypto, asn1, x509]),
        .target(
            name: "HTTPServer",
            dependencies: [
                "Billing", "Engine", "JSON", "LineProtocol", "Postgres", "ServiceCore", "StoreEvents", "Usage", crypto,
                httpTypes, hummingbird,
                .product(name: "HummingbirdCore", package: "hummingbird"),
                logging,
                .product(name: "Mustache", package: "swift-mustache"),
                nioCore,
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                .product(name: "NIOHTTPTypesHTTP2", package: "swift-nio-extras"),
                nioPosix, nioSSL,
                .product(name: "NIOTLS", package: "swift-nio"),
                serviceLifecycle, tracing,
            ],
            plugins: ["EmbedTexts"]
        ),
        // Requests to the product's backend when a user reaches a tier.
        .target(
            name: "Notifications",
            dependencies: [
                "Engine", "OutgoingHTTP", "ServiceCore", crypto, logging, nioCore, serviceLifecycle,
            ]
        ),
        // Spans of requests to a collector (OpenTelemetry).
        .target(
            name: "TraceExport",
            dependencies: [
                "Engine", "OutgoingHTTP", "ServiceCore", logging, nioCore, serviceLifecycle, tracing,
            ]
        ),
        // Requests that the service sends, with limits of time and size.
        .target(name: "OutgoingHTTP", dependencies: ["TransportSecurity", asyncHTTPClient, nioCore, nioPosix]),
        .target(
            name: "LoadGenerator",
            dependencies: [
                "TransportSecurity", dequeModule,
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                nioCore, nioPosix,
            ]
        ),
        .target(name: "OperatorConsole", dependencies: ["LineProtocol"]),
        // Which commit was built, as C because only there the package manager defines a text.
        .target(
            name: "CBuild",
            cSettings: Context.environment["HEADROOM_COMMIT"].map { [.define("HEADROOM_COMMIT", to: "\"\($0)\"")] }
        ),
        .executableTarget(
            name: "headroom",
            dependencies: [
                "Billing", "CBuild", "Engine", "HTTPServer", "JSON", "LineClient", "LineProtocol", "LineServer",
                "LoadGenerator", "Notifications", "OperatorConsole", "Postgres", "ServiceCore", "StoreEvents",
                "TraceExport", "TransportSecurity", "Usage",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                crypto, logging, unixSignals,
            ]
        ),
        // A chat that anyone can open in a browser: what a product builds on HeadroomClient.
        .executableTarget(
            name: "chat-backend",
            dependencies: [
                "HeadroomClient",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                asyncHTTPClient, crypto, httpTypes, hummingbird, logging, nioCore, nioPosix, serviceLifecycle,
                unixSignals,
            ],
            path: "Examples/ChatBackend",
            exclude: ["Demo", "README.md"],
            resources: [.copy("Page")]
        ),
        // sql/*.sql become constants in Engine, and so do languages in Usage and the texts of the HTTP port there, so
        // that the program needs no files beside it.
        .executableTarget(name: "embed-files", path: "Plugins/embed-files"),
        .plugin(name: "EmbedSQL", capability: .buildTool(), dependencies: ["embed-files"]),
        .plugin(name: "EmbedTexts", capability: .buildTool(), dependencies: ["embed-files"]),
        // What several test targets share: the PostgreSQL of a test run, the built service as a process, a proxy that
        // breaks connections, fixtures.
        .target(
            name: "TestSupport",
            dependencies: [
                "HeadroomClient", "Postgres", "Usage", "Engine", logging, nioCore, nioPosix,
            ],
            path: "Tests/TestSupport"
        ),
        .testTarget(name: "UsageTests", dependencies: ["TestSupport", "Usage", crypto]),
        .testTarget(name: "LineProtocolTests", dependencies: ["LineProtocol", "TestSupport", "Usage", nioCore]),
        .testTarget(name: "EmbedFilesTests", dependencies: ["embed-files"]),
        .testTarget(name: "PostgresTests", dependencies: ["Postgres", "TestSupport", logging]),
        .testTarget(
            name: "EngineTests",
            dependencies: [
                "Billing", "Engine", "JSON", "Postgres", "StoreEvents", "TestSupport", "Usage", inMemoryTracing,
                logging, tracing,
            ]
        ),
        .testTarget(
            name: "ServiceCoreTests",
            dependencies: [
                "Engine", "LineProtocol", "Postgres", "ServiceCore", "TestSupport", "Usage", crypto, logging, nioCore,
            ]
        ),
        .testTarget(
            name: "LineServerTests",
            dependencies: [
                "Engine", "LineProtocol", "LineServer", "Postgres", "ServiceCore", "TestSupport", "Usage", logging,
                nioCore, nioEmbedded,
            ]
        ),
        .testTarget(name: "LineClientTests", dependencies: ["LineClient", nioCore, nioEmbedded]),
        .testTarget(
            name: "ChatBackendTests",
            dependencies: [
                "HeadroomClient", "Postgres", "TestSupport", "Usage", "chat-backend",
                asyncHTTPClient, crypto, httpTypes, hummingbird, logging, nioCore, nioPosix, serviceLifecycle,
            ]
        ),
        .testTarget(
            name: "HeadroomClientTests",
            dependencies: [
                "HeadroomClient", "LineProtocol", "TestSupport", logging,
                .product(name: "MetricsTestKit", package: "swift-metrics"),
                nioCore, nioPosix, serviceLifecycle,
            ]
        ),
        // The fuzzers' bodies, over the corpus that they have gathered; fuzzing itself is at the end of this file.
        .testTarget(
            name: "FuzzTests",
            dependencies: fuzzedModules + ["TestSupport"],
            path: "Fuzz",
            exclude: [
                "Corpus", "Driver", "Found", "README.md", "dictionary.txt", "dictionary-billing.txt", "leaks.txt",
            ],
            sources: ["Targets", "Tests"]
        ),
        .testTarget(name: "JSONTests", dependencies: ["JSON", "TestSupport"]),
        .testTarget(
            name: "BillingTests",
            dependencies: [
                "Billing", "JSON", "StoreEvents", "TestSupport", "Usage", crypto, asn1, x509,
            ]
        ),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: [
                "Billing", "Engine", "HTTPServer", "LineProtocol", "Postgres", "ServiceCore", "StoreEvents",
                "TestSupport", "Usage", crypto, httpTypes, hummingbird, inMemoryTracing, logging, nioCore, nioEmbedded,
                .product(name: "NIOHTTP1", package: "swift-nio"),
                .product(name: "NIOHTTP2", package: "swift-nio-http2"),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
                asn1, tracing, x509,
            ]
        ),
        .testTarget(name: "NotificationsTests", dependencies: ["Engine", "Notifications", "ServiceCore"]),
        .testTarget(
            name: "TraceExportTests",
            dependencies: ["OutgoingHTTP", "ServiceCore", "TestSupport", "TraceExport", logging, nioCore, tracing]
        ),
        .testTarget(name: "OperatorConsoleTests", dependencies: ["OperatorConsole"]),
        .testTarget(name: "LoadGeneratorTests", dependencies: ["LoadGenerator", nioCore, nioEmbedded]),
    ],
    swiftLanguageModes: [.v6]
)

// What is built, besides what users of the package get; script/build sets it.
//
//   development   one release build for script/server, script/test and every benchmark. Tests and microbenchmarks reach
//                 internals (-enable-testing), so nothing is declared public for their sake.
//   times         the same, and the microbenchmarks under ordo-one/benchmark (script/microbench --times)
//   fuzzing       the fuzz targets (script/fuzz), with counters of edges for libFuzzer and with AddressSanitizer
//
// Without it no target has unsafe flags, which the package manager refuses in a package that others depend on.
let flavour = Context.environment["HEADROOM_FLAVOUR"] ?? ""
let isDevelopment = flavour == "development" || flavour == "times"

// A warning stops a build, so that tests and CI hold the line; but not a release build of somebody who only wants to
// run the service and may have a newer compiler. A deprecation stays a warning: it comes with the update of a
// dependency, not with a change here, and script/lint reports it.
for target in package.targets where [.regular, .executable, .test].contains(target.type) {
    let condition: BuildSettingCondition? = isDevelopment ? nil : .when(configuration: .debug)
    target.swiftSettings = [
        .treatAllWarnings(as: .error, condition), .treatWarning("DeprecatedDeclaration", as: .warning, condition),
    ]
    guard isDevelopment else { continue }
    // Tests are compiled for one run, so optimizing them takes longer than it saves, but where they try very many
    // inputs.
    let flags = target.type == .test && target.name != "FuzzTests" ? ["-Onone"] : ["-enable-testing"]
    target.swiftSettings?.append(.unsafeFlags(flags, .when(configuration: .release)))
}

if isDevelopment {
    package.targets += [
        // What a request costs in instructions and allocations (Benchmarks/micro/README.md).
        .target(name: "CMeasuredRegion", path: "Benchmarks/micro/CMeasuredRegion"),
        .target(
            name: "HotPath",
            dependencies: [
                "CLibPQ", "CMeasuredRegion", "Engine", "LineProtocol", "LineServer", "Postgres", "ServiceCore", "Usage",
                nioCore,
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
if flavour == "times" {
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

if flavour == "fuzzing" {
    let sanitizers = "-sanitize=fuzzer,address"
    // Assertions hold as in a debug build.
    let instrumented: [SwiftSetting] = [
        .unsafeFlags([sanitizers, "-enable-testing", "-assert-config", "Debug"], .when(configuration: .release))
    ]
    let names: Set = ["Billing", "JSON", "LineProtocol", "LineServer", "ServiceCore", "StoreEvents", "Usage"]
    for target in package.targets where names.contains(target.name) {
        target.swiftSettings? += instrumented
    }
    // The fuzz targets become a module of their own, in place of their test.
    package.targets.removeAll { $0.name == "FuzzTests" }
    package.targets += [
        .target(
            name: "FuzzTargets",
            dependencies: fuzzedModules,
            path: "Fuzz/Targets",
            swiftSettings: [.treatAllWarnings(as: .error)] + instrumented
        ),
        .executableTarget(
            name: "headroom-fuzz",
            dependencies: ["FuzzTargets"],
            path: "Fuzz/Driver",
            swiftSettings: [.treatAllWarnings(as: .error), .unsafeFlags([sanitizers, "-parse-as-library"])],
            linkerSettings: [.unsafeFlags([sanitizers, "-use-ld=lld"])]
        ),
    ]
}

// A dependency is not fetched for those who depend on this package when each of its products here has a condition that
// does not hold. So each product gets the trait of its package, except those that the library always needs.
let packagesOfEveryClient = ["swift-collections", "swift-log", "swift-metrics", "swift-nio"]
let traitsOfPackages = ["swift-nio-ssl": "TLS", "swift-service-lifecycle": "ServiceLifecycle"]
for target in package.targets {
    target.dependencies = target.dependencies.map { dependency in
        guard case .productItem(let name, let package?, let moduleAliases, nil) = dependency,
            !packagesOfEveryClient.contains(package)
        else { return dependency }
        // One trait: versions of the package manager differ in whether all of several have to be enabled, or any.
        return .product(
            name: name,
            package: package,
            moduleAliases: moduleAliases,
            condition: .when(traits: [traitsOfPackages[package] ?? "Server"])
        )
    }
}
