import LineProtocol
import Logging
import Postgres
import Testing
import Usage

@testable import ServiceCore

@Suite("The configuration")
struct ConfigurationTests {
    private func configuration(
        flags: [String: String] = [:],
        environment: [String: String] = [:]
    ) throws(InvalidSetting) -> ServerConfiguration {
        try ServerConfiguration(SettingsReader(flags: flags, environment: environment))
    }

    @Test("has the documented defaults")
    func defaults() throws {
        let configuration = try configuration()
        #expect(configuration.listen == ListenAddress(host: "127.0.0.1", port: 6747))
        #expect(configuration.database == .privateServer(dataDirectory: ".headroom"))
        #expect(configuration.settings.database.logLevel == .info)
        let connections = configuration.settings.connections
        #expect(connections.drainTimeout == .seconds(8) && connections.drainDelay == .zero)
        #expect(configuration.connectionsMaximum == 4_096)
        #expect(connections.inFlightMaximum == 1_024)
        #expect(connections.outputBytesMaximum == 1_048_576)
        #expect(connections.outputTimeout == .seconds(10))
        #expect(connections.idleTimeout == .seconds(300))
        #expect(connections.firstRequestTimeout == .seconds(10))
        #expect(connections.requestBytesMaximum == 1_024)
        #expect(connections.requestArgumentsMaximum == 16)
        #expect(!configuration.settings.counting.allowsWhenUnavailable)
        let access = configuration.settings.access
        #expect(access.authenticationTimeout == .seconds(10))
        #expect(access.authentication == .auto)
        #expect(access.connectionsPerTokenMaximum == nil)
        let engine = configuration.engine(database: DatabaseTopology("host=db"))
        #expect("\(engine.database)" == "host=db")
        #expect(engine.unknownUsersPolicy == .trial)
        #expect(engine.lanes == 2)
        #expect(engine.queueCapacity == 65_536)
        #expect(engine.requestTimeout == .seconds(2))
        #expect(engine.connectTimeout == .seconds(2))
    }

    @Test("prefers the flag to the environment, and the environment to the default")
    func precedence() throws {
        let environment = ["HEADROOM_LANES": "5", "HEADROOM_UNKNOWN_USERS": "deny", "LANES": "9"]
        let configuration = try configuration(flags: ["lanes": "3"], environment: environment)
        let engine = configuration.engine(database: DatabaseTopology(""))
        #expect(engine.lanes == 3)
        #expect(engine.unknownUsersPolicy == .deny)
        #expect(engine.batchMaximum == 512)
    }

    @Test("has every setting once, by a name of its own")
    func names() {
        #expect(Set(Settings.all.map(\.name)).count == Settings.all.count)
        for setting in Settings.all {
            #expect(setting.name.allSatisfy { $0.isLowercase || $0 == "-" })
            #expect(setting.environmentVariable == "HEADROOM_" + setting.name.uppercased().replacing("-", with: "_"))
            #expect(!setting.range.isEmpty && !setting.meaning.isEmpty)
        }
    }

    /// Values that a setting must refuse, by its range; the ends of a range of numbers are allowed.
    private static func values(of setting: SettingDefinition) -> (bad: [String], good: [String]) {
        let numbers = setting.range.split(separator: " ").compactMap { Int($0) }
        if numbers.count == 2 {
            let outside = [String(numbers[0] - 1), String(numbers[1] + 1)]
            return (outside + ["two", "1.5", "2s", "99999999999999999999999", "s3cret"], numbers.map(String.init))
        }
        switch setting.range {
        case "host:port":
            return (
                ["6747", "host:", ":6747", "::1:6747", "host:65536", "host:-1", "s3cret"], ["host:0", "[::1]:6747"]
            )
        case "host:port or off": return (["on", "6748", "s3cret"], ["off", "host:1"])
        case "http or https URL":
            return (["s3cret", "https://", "ftp://s3cret", "https://a/s3cret b"], ["https://example.org/account?a=1"])
        case "https URL, or http URL of this machine":
            return (
                [
                    "s3cret", "https://", "https:///s3cret", "http://example.com/s3cret", "http://10.0.0.1/",
                    "ftp://s3cret", "http://127.0.0.1.example.com/", "https://user:s3cret@example.com/",
                    "https://a/s3cret b", "https://a/#s3cret", "https://a:123456/",
                ],
                []
            )
        case "a UUID":
            return (
                ["s3cret", "7f1c0a523a514a7e9d550b6a3f1f7c11"],
                ["7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "7F1C0A52-3A51-4A7E-9D55-0B6A3F1F7C11"]
            )
        case "origins such as https://app.example.com, separated by commas":
            return (
                ["s3cret", "*", "null", "https://", "https://a/", "https://A.example", "ftp://a", "https://a b"],
                ["https://app.example.com", "http://localhost:3000, https://[::1]:8443"]
            )
        case "0 to 3d, such as 90s, 30m, 1h or 2d; without a unit in seconds":
            return (["4d", "73h", "259201", "-1", "1w", "1.5h", "s3cret"], ["0", "90s", "30m", "1h", "3d", "259200"])
        case LanguageTag.form: return (["e", "en_US", "s3cret value", "de-"], ["de", "pt-BR"])
        case "path", "libpq connection string or URI": return ([], [])
        case "text": return (setting.isSecret ? [",", " , ,"] : [], [])
        default:
            let words = setting.range.replacing(" or ", with: ", ").split(separator: ", ").map(String.init)
            return ([words[0].capitalized, "maybe", "s3cret"], words)
        }
    }

    @Test("refuses a value out of range by the setting's name and range, without repeating it")
    func badValues() {
        for setting in Settings.all {
            for value in ConfigurationTests.values(of: setting).bad {
                let error = #expect(throws: InvalidSetting.self, "\(setting.name)=\(value)") {
                    try configuration(environment: [setting.environmentVariable: value])
                }
                let text = error.map { "\($0)" } ?? ""
                #expect(text == "\(setting.name) (\(setting.environmentVariable)) must be \(setting.range)")
                #expect(!text.contains("s3cret"))
            }
        }
    }

    @Test("accepts the ends of every range and every listed word")
    func goodValues() {
        for setting in Settings.all {
            for value in ConfigurationTests.values(of: setting).good {
                #expect(throws: Never.self, "\(setting.name)=\(value)") {
                    try configuration(flags: [setting.name: value])
                }
            }
        }
    }

    @Test("accepts off, or an address, for http")
    func http() throws {
        #expect(try configuration(flags: ["http": "off"]).http == nil)
        let set = try configuration(flags: ["http": "[::1]:0"]).http
        #expect(set?.address == ListenAddress(host: "::1", port: 0) && set?.isByDefault == false)
        #expect(try configuration().http?.isByDefault == true)
    }

    @Test(
        "limits HTTP connections, with those for health, to what the system allows",
        arguments: [1, 2, 7, 256, 1_000, 65_536]
    )
    func httpDescriptors(connections: Int) throws {
        let flags = ["http-connections-maximum": "\(connections)"]
        let configured = try #require(configuration(flags: flags).http)
        #expect(configured.descriptorsMaximum - configured.connectionsMaximum == min(64, max(1, connections / 4)))
        for allowed in [0, 1, 2, 3, 9, 50, 319, 320, 321, 999, 65_599, 65_600, 70_000] {
            var http = configured
            http.allowDescriptors(atMost: allowed)
            #expect(http.descriptorsMaximum <= max(allowed, 2) && http.connectionsMaximum <= connections)
            if allowed >= configured.descriptorsMaximum { #expect(http.connectionsMaximum == connections) }
        }
    }

    @Test("treats an empty value as not set")
    func empty() throws {
        let configuration = try configuration(environment: ["HEADROOM_HTTP": "", "HEADROOM_LANES": ""])
        #expect(configuration.http?.address.port == 6_748 && configuration.http?.isByDefault == true)
        #expect(configuration.engine(database: DatabaseTopology("")).lanes == 2)
    }

    @Test("reads several secrets of RevenueCat's, which no dump of it shows")
    func webhookSecrets() throws {
        let environment = [
            "HEADROOM_REVENUECAT_AUTHORIZATION": " Bearer s3cret one , s3cret two,",
            "HEADROOM_REVENUECAT_SIGNING_SECRET": "s3cret",
        ]
        let configuration = try configuration(environment: environment)
        let webhooks = configuration.settings.webhooks
        #expect(try webhooks.revenueCatAuthorizations.texts() == ["Bearer s3cret one", "s3cret two"])
        #expect(try webhooks.revenueCatSigningSecrets.texts() == ["s3cret"])
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!("\(configuration)" + String(reflecting: configuration) + dumped).contains("s3cret"))
        #expect(try self.configuration().settings.webhooks.revenueCatAuthorizations.isEmpty)
    }

    @Test("reads Stripe's secrets, which no dump of it shows, and its switch")
    func stripe() throws {
        let flags = ["stripe-signing-secret": "whsec_s3cret1, whsec_s3cret2", "stripe-refund-revokes": "off"]
        let webhooks = try configuration(flags: flags).settings.webhooks
        let secrets = webhooks.stripeSigningSecrets
        #expect(try secrets.texts() == ["whsec_s3cret1", "whsec_s3cret2"])
        #expect(webhooks.stripeWindowSeconds == 300 && !webhooks.stripeRefundRevokes)
        #expect(!"\(webhooks) \(secrets)".contains("s3cret"))
        let unset = try configuration().settings.webhooks
        #expect(unset.stripeSigningSecrets.isEmpty && unset.stripeRefundRevokes)
    }

    @Test("requires the App Store's bundle id and root certificate together")
    func appStore() throws {
        let both = ["appstore-bundle-id": "com.example.chat", "appstore-root-certificate": "/root.cer"]
        let flags = both.merging(["appstore-app-apple-id": "6447000001"]) { $1 }
        let webhooks = try configuration(flags: flags).settings.webhooks
        #expect(webhooks.appStoreBundleID == "com.example.chat")
        #expect(webhooks.appStoreRootCertificate?.path == "/root.cer")
        #expect(webhooks.appStoreAppleID == 6_447_000_001)
        #expect(try configuration().settings.webhooks.appStoreBundleID == nil)
        for (name, value) in both {
            let error = #expect(throws: InvalidSetting.self) { try configuration(flags: [name: value]) }
            #expect(error?.description.contains("go together") == true)
        }
    }

    @Test("sends notifications to an https URL, or an http URL of this machine, and requires a secret")
    func notifications() throws {
        #expect(try configuration().settings.notifications.url == nil)
        #expect(try !configuration().engine(database: DatabaseTopology("")).sendsNotifications)
        for url in [
            "https://example.com", "https://example.com:8443/hooks?a=1", "https://[2001:db8::1]/",
            "http://localhost:80/a", "http://127.0.0.1", "http://[::1]:8080/hooks",
        ] {
            let secret = ["notifications-url": url, "notifications-secret": "whsec_s3cret whsec_other"]
            let configuration = try configuration(flags: secret)
            #expect(configuration.settings.notifications.url == url)
            #expect(configuration.settings.notifications.sweepSeconds == 600)
            #expect(configuration.engine(database: DatabaseTopology("")).sendsNotifications)
            #expect(!"\(configuration)".contains("s3cret"))
            let file = ["notifications-url": url, "notifications-secret-file": "/secrets"]
            #expect(try !self.configuration(flags: file).settings.notifications.secrets.isEmpty)
            let error = #expect(throws: InvalidSetting.self) {
                try self.configuration(flags: ["notifications-url": url])
            }
            #expect(error?.description.contains("needs notifications-secret") == true)
        }
    }

    @Test("traces to an http or https URL, with secret header fields only where nobody else can read them")
    func tracing() throws {
        #expect(try configuration().settings.tracing.url == nil)
        for (url, isLocalOrSecure) in [
            ("https://collector.example.com/v1/traces", true), ("http://127.0.0.1:4318/v1/traces", true),
            ("http://localhost:4318/v1/traces", true), ("http://otel-collector.monitoring:4318/v1/traces", false),
            ("http://127.0.0.1.example.com/", false), ("http://localhost.example.com/v1/traces", false),
        ] {
            let plain = try configuration(flags: ["tracing-url": url]).settings.tracing
            #expect(plain.url == url && plain.headers.isEmpty)
            #expect(plain.sampledPercent == 100 && plain.slowTime == .milliseconds(100))
            for secret in [["tracing-headers": "Authorization=s3cret"], ["tracing-headers-file": "/secrets"]] {
                let flags = secret.merging(["tracing-url": url]) { $1 }
                if isLocalOrSecure {
                    let configuration = try configuration(flags: flags)
                    #expect(!configuration.settings.tracing.headers.isEmpty && !"\(configuration)".contains("s3cret"))
                } else {
                    let error = #expect(throws: InvalidSetting.self) { try configuration(flags: flags) }
                    #expect(error?.description.contains("must be an https URL") == true)
                }
            }
        }
        for url in ["collector:4318", "ftp://a/", "http://", "http://a b/", "http://user:s3cret@a/", "http://a:x/"] {
            #expect(throws: InvalidSetting.self) { try configuration(flags: ["tracing-url": url]) }
        }
    }

    @Test("requires a certificate and its key together, and allows a clients' CA only with them")
    func tls() throws {
        #expect(try configuration().settings.access.tls == nil)
        let both = ["tls-certificate": "/tls/server.pem", "tls-key": "/tls/server.key"]
        let files = TLSFiles(certificate: "/tls/server.pem", key: "/tls/server.key", clientCA: nil)
        #expect(try configuration(flags: both).settings.access.tls == files)
        let withCA = try configuration(flags: both.merging(["tls-client-ca": "/tls/ca.pem"]) { $1 })
        #expect(withCA.settings.access.tls?.clientCA == "/tls/ca.pem")
        for alone in ["tls-certificate", "tls-key", "tls-client-ca"] {
            let error = #expect(throws: InvalidSetting.self) { try configuration(flags: [alone: "/tls/x"]) }
            #expect(error?.description.contains("tls-certificate and tls-key") == true)
        }
    }

    @Test("prefers its own database URL to DATABASE_URL, and uses a private server without either")
    func database() throws {
        let conventional = ["DATABASE_URL": "postgres://conventional/db"]
        let both = conventional.merging(["HEADROOM_DATABASE_URL": "postgres://own/db"]) { $1 }
        #expect(try configuration(environment: conventional).database == .url(Secret("postgres://conventional/db")))
        #expect(try configuration(environment: both).database == .url(Secret("postgres://own/db")))
        let flag = try configuration(flags: ["database-url": "host=flag"], environment: both)
        #expect(flag.database == .url(Secret("host=flag")))
        let directory = try configuration(flags: ["data-dir": "/srv/headroom"], environment: ["DATABASE_URL": ""])
        #expect(directory.database == .privateServer(dataDirectory: "/srv/headroom"))
    }
}
