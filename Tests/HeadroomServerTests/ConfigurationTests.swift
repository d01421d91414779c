import Logging
import Testing
import Usage

@testable import HeadroomServer

@Suite("The configuration")
struct ConfigurationTests {
    private func configuration(
        flags: [String: String] = [:],
        environment: [String: String] = [:]
    ) throws(SettingsReader.Invalid) -> ServerConfiguration {
        try ServerConfiguration(SettingsReader(flags: flags, environment: environment))
    }

    @Test("has the documented defaults")
    func defaults() throws {
        let configuration = try configuration()
        #expect(configuration.listen == ListenAddress(host: "127.0.0.1", port: 6747))
        #expect(configuration.database == .privateServer(dataDirectory: ".headroom"))
        #expect(configuration.logLevel == .info)
        #expect(configuration.drainTimeout == .seconds(8))
        let limits = configuration.connectionLimits
        #expect(limits.connectionsMaximum == 4_096)
        #expect(limits.inFlightMaximum == 1_024)
        #expect(limits.outputBytesMaximum == 1_048_576)
        #expect(limits.outputTimeout == .seconds(10))
        #expect(limits.idleTimeout == .seconds(300))
        #expect(limits.firstRequestTimeout == .seconds(10))
        #expect(limits.request.bytesMaximum == 1_024)
        #expect(limits.request.tokensMaximum == 16)
        #expect(!limits.allowsWhenUnavailable)
        #expect(limits.authenticationTimeout == .seconds(10))
        #expect(configuration.authentication == .auto)
        #expect(configuration.connectionsPerTokenMaximum == 4_096)
        let store = configuration.store(databaseURL: "host=db")
        #expect(store.databaseURL == "host=db")
        #expect(store.unknownUsers == .trial)
        #expect(store.lanes == 2)
        #expect(store.queueCapacity == 65_536)
        #expect(store.requestTimeout == .seconds(2))
        #expect(store.connectTimeout == .seconds(2))
    }

    @Test("takes the flag before the environment, and that before the default")
    func precedence() throws {
        let environment = ["HEADROOM_LANES": "5", "HEADROOM_UNKNOWN_USERS": "deny", "LANES": "9"]
        let configuration = try configuration(flags: ["lanes": "3"], environment: environment)
        let store = configuration.store(databaseURL: "")
        #expect(store.lanes == 3)
        #expect(store.unknownUsers == .deny)
        #expect(store.batchMaximum == 512)
    }

    @Test("reads every setting from its flag and from its environment variable", arguments: Setting.all)
    func everySetting(setting: Setting) {
        #expect(setting.environmentName == "HEADROOM_" + setting.name.uppercased().replacing("-", with: "_"))
        let fromFlag = SettingsReader(flags: [setting.name: "from the flag"], environment: [:])
        #expect(fromFlag.text(setting) == "from the flag")
        let environment = [setting.environmentName: "from the environment"]
        let fromEnvironment = SettingsReader(flags: [:], environment: environment)
        #expect(fromEnvironment.text(setting) == "from the environment")
        let fromBoth = SettingsReader(flags: [setting.name: "from the flag"], environment: environment)
        #expect(fromBoth.text(setting) == "from the flag")
        #expect(SettingsReader(flags: [:], environment: [:]).text(setting) == setting.defaultValue)
    }

    @Test("names each setting once")
    func names() {
        #expect(Set(Setting.all.map(\.name)).count == Setting.all.count)
        for setting in Setting.all {
            #expect(setting.name.allSatisfy { $0.isLowercase || $0 == "-" })
            #expect(!setting.range.isEmpty && !setting.meaning.isEmpty)
        }
    }

    private static let badValues: [(Setting, [String])] = [
        (.listen, ["6747", "host:", ":6747", "::1:6747", "host:65536", "host:-1", "s3cret"]),
        (.http, ["on", "6748", "s3cret"]),
        (.unknownUsers, ["Trial", "s3cret"]),
        (.whenUnavailable, ["yes", "s3cret"]),
        (.logLevel, ["verbose", "s3cret"]),
        (.lanes, ["0", "65", "two", "1.5", "-1", "s3cret"]),
        (.eventLoops, ["0", "65"]),
        (.batchMaximum, ["0", "4097"]),
        (.queueCapacity, ["63", "1048577"]),
        (.requestTimeout, ["99", "60001", "2s"]),
        (.connectTimeout, ["99", "60001"]),
        (.connectionsMaximum, ["0", "1000001"]),
        (.inFlightMaximum, ["0", "65537"]),
        (.requestSize, ["127", "65537"]),
        (.requestTokens, ["7", "65"]),
        (.outputBytes, ["65535", "67108865"]),
        (.outputTimeout, ["99", "3600001"]),
        (.idleTimeout, ["999", "86400001"]),
        (.firstRequestTimeout, ["99", "3600001"]),
        (.keysKeepDays, ["6", "366", "1 week"]),
        (.reportTimeout, ["999", "3600001", "1m"]), (.changesPoll, ["9", "60001", "-1"]),
        (.subscriptionsMaximum, ["0", "1000001", "many"]),
        (.authentication, ["on", "yes", "headroom_s3cret"]), (.authenticationTimeout, ["99", "600001"]),
        (.connectionsPerTokenMaximum, ["0", "1000001", "all"]),
        (.tlsHandshakeTimeout, ["99", "3600001", "soon"]), (.trustedNetwork, ["maybe", "Yes", "s3cret"]),
        (.queueWait, ["9", "30001", "1s"]),
        (.connectionsPerAddress, ["0", "1000001", "all"]), (.incompleteRequestTimeout, ["99", "3600001"]),
        (.drainTimeout, ["99", "600001", "99999999999999999999999"]),
        (.httpTLS, ["yes", "s3cret"]), (.httpConnectionsMaximum, ["0", "65537"]),
        (.httpConnectionsPerAddress, ["0", "65537", "all"]),
        (.httpBodyMaximum, ["1023", "16777217", "1 MB"]), (.httpRequestTimeout, ["99", "600001"]),
        (.httpIdleTimeout, ["999", "3600001"]),
        (.revenueCatAuthorization, [",", " , ,"]), (.revenueCatSigningSecret, [","]),
        (.revenueCatSignatureWindow, ["0", "3601", "5m"]), (.stripeSigningSecret, [","]),
        (.stripeSignatureWindow, ["0", "3601", "5m"]), (.stripeRefundRevokes, ["yes", "On", "s3cret"]),
        (.storeEnvironment, ["Production", "test", "s3cret"]), (.billingSessions, ["0", "65", "all"]),
        (.appStoreAppleID, ["0", "1000000000000000", "id6447000001", "s3cret"]),
    ]

    @Test("refuses a bad value by the setting's name and range, and never repeats it", arguments: badValues)
    func badValue(setting: Setting, values: [String]) {
        for value in values {
            let error = #expect(throws: SettingsReader.Invalid.self, "\(setting.name)=\(value)") {
                try configuration(environment: [setting.environmentName: value])
            }
            let text = error.map { "\($0)" } ?? ""
            #expect(text == "\(setting.name) (\(setting.environmentName)) must be \(setting.range)")
            #expect(!text.contains("s3cret"))
        }
    }

    @Test("takes the ends of every range that it tells")
    func ranges() throws {
        for (setting, values) in ConfigurationTests.badValues {
            let numbers = setting.range.split(separator: " ").compactMap { Int($0) }
            guard numbers.count == 2 else { continue }
            for number in numbers {
                #expect(throws: Never.self, "\(setting.name)=\(number)") {
                    try configuration(flags: [setting.name: String(number)])
                }
            }
            #expect(values.contains(String(numbers[0] - 1)) && values.contains(String(numbers[1] + 1)))
        }
    }

    @Test("has a bad value for every setting that can have one")
    func everyBadValue() {
        let webhooks: [Setting] = [
            .revenueCatAuthorizationFile, .revenueCatSigningSecretFile, .appStoreBundleID, .appStoreRoot,
            .stripeSigningSecretFile,
        ]
        let free: [Setting] = [.databaseURL, .dataDirectory, .tlsCertificate, .tlsKey, .tlsClientCA] + webhooks
        let tested = ConfigurationTests.badValues.map(\.0.name) + free.map(\.name)
        #expect(Set(tested) == Set(Setting.all.map(\.name)))
    }

    @Test("lets one token have all connections, unless said otherwise")
    func perToken() throws {
        #expect(try configuration(flags: ["connections-maximum": "77"]).connectionsPerTokenMaximum == 77)
        let flags = ["connections-maximum": "77", "connections-per-token-maximum": "5"]
        #expect(try configuration(flags: flags).connectionsPerTokenMaximum == 5)
    }

    @Test("takes http off, or an address")
    func http() throws {
        #expect(try configuration(flags: ["http": "off"]).http == nil)
        let own = try configuration(flags: ["http": "[::1]:0"]).http
        #expect(own?.address == ListenAddress(host: "::1", port: 0) && own?.isByDefault == false)
        #expect(try configuration().http?.isByDefault == true)
    }

    @Test("gives one address all connections of the HTTP side, unless said otherwise")
    func httpPerAddress() throws {
        #expect(try configuration().http?.connectionsPerAddressMaximum == .max)
        let flags = ["http-connections-per-address-maximum": "5"]
        #expect(try configuration(flags: flags).http?.connectionsPerAddressMaximum == 5)
    }

    @Test(
        "keeps the HTTP side's connections, with those for health, within what the system allows",
        arguments: [
            1, 2, 7, 256, 1_000, 65_536,
        ]
    )
    func httpDescriptors(connections: Int) throws {
        let flags = ["http-connections-maximum": "\(connections)"]
        let asked = try #require(configuration(flags: flags).http)
        #expect(asked.descriptorsMaximum - asked.connectionsMaximum == min(64, max(1, connections / 4)))
        for allowed in [0, 1, 2, 3, 9, 50, 319, 320, 321, 999, 65_599, 65_600, 70_000] {
            var http = asked
            http.allowDescriptors(atMost: allowed)
            #expect(http.descriptorsMaximum <= max(allowed, 2) && http.connectionsMaximum <= connections)
            if allowed >= asked.descriptorsMaximum { #expect(http.connectionsMaximum == connections) }
        }
    }

    @Test("takes an empty value for none")
    func empty() throws {
        let configuration = try configuration(environment: ["HEADROOM_HTTP": "", "HEADROOM_LANES": ""])
        #expect(configuration.http?.address.port == 6_748 && configuration.http?.isByDefault == true)
        #expect(configuration.store(databaseURL: "").lanes == 2)
    }

    @Test("takes several secrets of RevenueCat's, which no dump of it shows")
    func webhookSecrets() throws {
        let environment = [
            "HEADROOM_REVENUECAT_AUTHORIZATION": " Bearer s3cret one , s3cret two,",
            "HEADROOM_REVENUECAT_SIGNING_SECRET": "s3cret",
        ]
        let configuration = try configuration(environment: environment)
        let texts = configuration.webhooks.revenueCatAuthorizations.values.map(\.text)
        #expect(texts == ["Bearer s3cret one", "s3cret two"])
        #expect(configuration.webhooks.revenueCatSigningSecrets.values.map(\.text) == ["s3cret"])
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!("\(configuration)" + String(reflecting: configuration) + dumped).contains("s3cret"))
        #expect(try self.configuration().webhooks.revenueCatAuthorizations.isEmpty)
    }

    @Test("takes Stripe's secrets, which no dump of it shows, and its switch")
    func stripe() throws {
        let flags = ["stripe-signing-secret": "whsec_s3cret1, whsec_s3cret2", "stripe-refund-revokes": "off"]
        let stripe = try configuration(flags: flags).webhooks.stripe
        #expect(stripe.signingSecrets.values.map(\.text) == ["whsec_s3cret1", "whsec_s3cret2"])
        #expect(stripe.windowSeconds == 300 && !stripe.refundRevokes)
        #expect(!"\(stripe)".contains("s3cret"))
        let unset = try configuration().webhooks.stripe
        #expect(unset.signingSecrets.isEmpty && unset.refundRevokes)
    }

    @Test("takes the App Store's bundle id and root together")
    func appStore() throws {
        let both = ["appstore-bundle-id": "com.example.chat", "appstore-root-certificate": "/root.cer"]
        let app = try configuration(flags: both.merging(["appstore-app-apple-id": "6447000001"]) { $1 }).webhooks
            .appStore
        #expect(app?.bundleID == "com.example.chat")
        #expect(app?.rootCertificate == "/root.cer")
        #expect(app?.appleID == 6_447_000_001)
        #expect(try configuration().webhooks.appStore == nil)
        for (name, value) in both {
            let error = #expect(throws: SettingsReader.Invalid.self) { try configuration(flags: [name: value]) }
            #expect(error?.description.contains("go together") == true)
        }
    }

    @Test("takes a certificate and its key together, and a CA of clients only with them")
    func tls() throws {
        #expect(try configuration().tls == nil)
        let both = ["tls-certificate": "/tls/server.pem", "tls-key": "/tls/server.key"]
        let files = TLSFiles(certificate: "/tls/server.pem", key: "/tls/server.key", clientCA: nil)
        #expect(try configuration(flags: both).tls == files)
        let wanted = try configuration(flags: both.merging(["tls-client-ca": "/tls/ca.pem"]) { $1 })
        #expect(wanted.tls?.clientCA == "/tls/ca.pem")
        for alone in ["tls-certificate", "tls-key", "tls-client-ca"] {
            let error = #expect(throws: SettingsReader.Invalid.self) { try configuration(flags: [alone: "/tls/x"]) }
            #expect(error?.description.contains("tls-certificate and tls-key") == true)
        }
    }

    @Test("takes its own database before the usual one, and a private one without any")
    func database() throws {
        let usual = ["DATABASE_URL": "postgres://usual/db"]
        let both = usual.merging(["HEADROOM_DATABASE_URL": "postgres://own/db"]) { $1 }
        #expect(try configuration(environment: usual).database == .url("postgres://usual/db"))
        #expect(try configuration(environment: both).database == .url("postgres://own/db"))
        let flag = try configuration(flags: ["database-url": "host=flag"], environment: both)
        #expect(flag.database == .url("host=flag"))
        let directory = try configuration(flags: ["data-dir": "/srv/headroom"], environment: ["DATABASE_URL": ""])
        #expect(directory.database == .privateServer(dataDirectory: "/srv/headroom"))
    }
}
