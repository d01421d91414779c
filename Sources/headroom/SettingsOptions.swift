import ArgumentParser
import HeadroomServer

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension Setting {
    var help: ArgumentHelp {
        let fallback = defaultValue.map { ", default \($0)" } ?? ""
        return ArgumentHelp("\(meaning) (\(range)\(fallback); \(environmentName))", valueName: "value")
    }
}

/// Where the data is; every command takes it.
struct DatabaseOptions: ParsableArguments {
    @Option(help: Setting.databaseURL.help) var databaseUrl: String?
    @Option(help: Setting.dataDirectory.help) var dataDir: String?
    @Option(help: Setting.logLevel.help) var logLevel: String?

    var values: [(Setting, String?)] {
        [(.databaseURL, databaseUrl), (.dataDirectory, dataDir), (.logLevel, logLevel)]
    }
}

/// What only `serve` takes.
struct ServeOptions: ParsableArguments {
    @Option(help: Setting.listen.help) var listen: String?
    @Option(help: Setting.http.help) var http: String?
    @Option(help: Setting.unknownUsers.help) var unknownUsers: String?
    @Option(help: Setting.whenUnavailable.help) var whenUnavailable: String?
    @Option(help: Setting.lanes.help) var lanes: String?
    @Option(help: Setting.eventLoops.help) var eventLoops: String?
    @Option(help: Setting.batchMaximum.help) var batchMaximum: String?
    @Option(help: Setting.queueCapacity.help) var queueCapacity: String?
    @Option(help: Setting.requestTimeout.help) var requestTimeoutMs: String?
    @Option(help: Setting.connectTimeout.help) var connectTimeoutMs: String?
    @Option(help: Setting.connectionsMaximum.help) var connectionsMaximum: String?
    @Option(help: Setting.inFlightMaximum.help) var inFlightMaximum: String?
    @Option(help: Setting.requestSize.help) var requestSizeBytes: String?
    @Option(help: Setting.requestTokens.help) var requestTokens: String?
    @Option(help: Setting.outputBytes.help) var outputBytes: String?
    @Option(help: Setting.outputTimeout.help) var outputTimeoutMs: String?
    @Option(help: Setting.idleTimeout.help) var idleTimeoutMs: String?
    @Option(help: Setting.firstRequestTimeout.help) var firstRequestTimeoutMs: String?
    @Option(help: Setting.drainTimeout.help) var drainTimeoutMs: String?
    @Option(help: Setting.keysKeepDays.help) var keysKeepDays: String?
    @Option(help: Setting.reportTimeout.help) var reportTimeoutMs: String?
    @Option(help: Setting.changesPoll.help) var changesPollMs: String?
    @Option(help: Setting.subscriptionsMaximum.help) var subscriptionsMaximum: String?
    @Option(help: Setting.authentication.help) var authentication: String?
    @Option(help: Setting.authenticationTimeout.help) var authenticationTimeoutMs: String?
    @Option(help: Setting.connectionsPerTokenMaximum.help) var connectionsPerTokenMaximum: String?
    @Option(help: Setting.tlsCertificate.help) var tlsCertificate: String?
    @Option(help: Setting.tlsKey.help) var tlsKey: String?
    @Option(help: Setting.tlsClientCA.help) var tlsClientCa: String?
    @Option(help: Setting.tlsHandshakeTimeout.help) var tlsHandshakeTimeoutMs: String?
    @Option(help: Setting.trustedNetwork.help) var trustedNetwork: String?
    @Option(help: Setting.queueWait.help) var queueWaitMs: String?
    @Option(help: Setting.connectionsPerAddress.help) var connectionsPerAddressMaximum: String?
    @Option(help: Setting.incompleteRequestTimeout.help) var incompleteRequestTimeoutMs: String?
    @Option(help: Setting.httpTLS.help) var httpTls: String?
    @Option(help: Setting.httpConnectionsMaximum.help) var httpConnectionsMaximum: String?
    @Option(help: Setting.httpConnectionsPerAddress.help) var httpConnectionsPerAddressMaximum: String?
    @Option(help: Setting.httpBodyMaximum.help) var httpBodyMaximumBytes: String?
    @Option(help: Setting.httpRequestTimeout.help) var httpRequestTimeoutMs: String?
    @Option(help: Setting.httpIdleTimeout.help) var httpIdleTimeoutMs: String?
    @Option(help: Setting.revenueCatAuthorization.help) var revenuecatAuthorization: String?
    @Option(help: Setting.revenueCatAuthorizationFile.help) var revenuecatAuthorizationFile: String?
    @Option(help: Setting.revenueCatSigningSecret.help) var revenuecatSigningSecret: String?
    @Option(help: Setting.revenueCatSigningSecretFile.help) var revenuecatSigningSecretFile: String?
    @Option(help: Setting.revenueCatSignatureWindow.help) var revenuecatSignatureWindowSeconds: String?
    @Option(help: Setting.appStoreBundleID.help) var appstoreBundleId: String?
    @Option(help: Setting.appStoreAppleID.help) var appstoreAppAppleId: String?
    @Option(help: Setting.appStoreRoot.help) var appstoreRootCertificate: String?
    @Option(help: Setting.stripeSigningSecret.help) var stripeSigningSecret: String?
    @Option(help: Setting.stripeSigningSecretFile.help) var stripeSigningSecretFile: String?
    @Option(help: Setting.stripeSignatureWindow.help) var stripeSignatureWindowSeconds: String?
    @Option(help: Setting.stripeRefundRevokes.help) var stripeRefundRevokes: String?
    @Option(help: Setting.storeEnvironment.help) var storeEnvironment: String?
    @Option(help: Setting.billingSessions.help) var billingSessions: String?

    var values: [(Setting, String?)] {
        [
            (.listen, listen), (.http, http), (.unknownUsers, unknownUsers), (.whenUnavailable, whenUnavailable),
            (.lanes, lanes), (.eventLoops, eventLoops), (.batchMaximum, batchMaximum),
            (.queueCapacity, queueCapacity), (.requestTimeout, requestTimeoutMs), (.connectTimeout, connectTimeoutMs),
            (.connectionsMaximum, connectionsMaximum), (.inFlightMaximum, inFlightMaximum),
            (.requestSize, requestSizeBytes), (.requestTokens, requestTokens), (.outputBytes, outputBytes),
            (.outputTimeout, outputTimeoutMs), (.idleTimeout, idleTimeoutMs),
            (.firstRequestTimeout, firstRequestTimeoutMs), (.drainTimeout, drainTimeoutMs),
            (.keysKeepDays, keysKeepDays), (.reportTimeout, reportTimeoutMs), (.changesPoll, changesPollMs),
            (.subscriptionsMaximum, subscriptionsMaximum),
            (.authentication, authentication), (.authenticationTimeout, authenticationTimeoutMs),
            (.connectionsPerTokenMaximum, connectionsPerTokenMaximum), (.tlsCertificate, tlsCertificate),
            (.tlsKey, tlsKey),
            (.tlsClientCA, tlsClientCa), (.tlsHandshakeTimeout, tlsHandshakeTimeoutMs),
            (.trustedNetwork, trustedNetwork), (.queueWait, queueWaitMs),
            (.connectionsPerAddress, connectionsPerAddressMaximum),
            (.incompleteRequestTimeout, incompleteRequestTimeoutMs),
            (.httpTLS, httpTls), (.httpConnectionsMaximum, httpConnectionsMaximum),
            (.httpConnectionsPerAddress, httpConnectionsPerAddressMaximum),
            (.httpBodyMaximum, httpBodyMaximumBytes), (.httpRequestTimeout, httpRequestTimeoutMs),
            (.httpIdleTimeout, httpIdleTimeoutMs),
        ] + webhooks
    }

    private var webhooks: [(Setting, String?)] {
        [
            (.revenueCatAuthorization, revenuecatAuthorization),
            (.revenueCatAuthorizationFile, revenuecatAuthorizationFile),
            (.revenueCatSigningSecret, revenuecatSigningSecret),
            (.revenueCatSigningSecretFile, revenuecatSigningSecretFile),
            (.revenueCatSignatureWindow, revenuecatSignatureWindowSeconds),
            (.appStoreBundleID, appstoreBundleId), (.appStoreAppleID, appstoreAppAppleId),
            (.appStoreRoot, appstoreRootCertificate), (.stripeSigningSecret, stripeSigningSecret),
            (.stripeSigningSecretFile, stripeSigningSecretFile),
            (.stripeSignatureWindow, stripeSignatureWindowSeconds), (.stripeRefundRevokes, stripeRefundRevokes),
            (.storeEnvironment, storeEnvironment), (.billingSessions, billingSessions),
        ]
    }

    /// Of the settings that hold a secret and were given as a flag.
    var secretsOnTheCommandLine: [Setting] {
        values.filter { $0.0.isSecret && $0.1 != nil }.map(\.0)
    }
}

extension SettingsReader {
    init(_ values: [(Setting, String?)]) {
        var flags: [String: String] = [:]
        for (setting, value) in values {
            if let value { flags[setting.name] = value }
        }
        self.init(flags: flags, environment: SettingsReader.environment())
    }

    private static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2 { variables[String(pair[0])] = String(pair[1]) }
            entry += 1
        }
        return variables
    }
}
