"""A package that depends on HeadroomClient: for each combination of traits, the packages that SwiftPM fetches and the
programs that compile."""

import re
import unittest

from support import processes, settings
from support.case import Case
from support.client_dependent import ROOT, CompiledLibrary, Dependent, built_directory
from support.nightly import IS_LONG, nightly

ALWAYS_FETCHED = {"swift-atomics", "swift-collections", "swift-log", "swift-metrics", "swift-nio", "swift-system"}
FETCHED_FOR_TRAIT = {"TLS": {"swift-nio-ssl"}, "ServiceLifecycle": {"swift-async-algorithms", "swift-service-lifecycle"}}
TRAIT_COMBINATIONS = ((), ("TLS",), ("ServiceLifecycle",), ("TLS", "ServiceLifecycle"))

USES_NO_TRAIT = """
import Foundation
import HeadroomClient

func ask(_ user: UUID, _ id: String, _ end: Date) async throws {
    let headroom = HeadroomClient(.init(endpoints: [.init(host: "127.0.0.1")], credentials: .init(token: "t")))
    for key in ["message-1", MessageKey(user), try MessageKey(id), try MessageKey(digestOf: id)] {
        _ = try await headroom.consume(UserID(user), key: key)
    }
    _ = try await headroom.setPlan(PlanChange(user: UserID(user), plan: "paid"))
    _ = try await headroom.setPlan(PlanChange(user: UserID(user), plan: "paid", state: .cancelled, expiresAt: end))
    print(try await headroom.usage(of: UserID(user)).resetDate ?? end)
    await headroom.shutDown()
}
"""
USES_TLS = """
import HeadroomClient

func client(_ ca: String) throws -> HeadroomClient {
    HeadroomClient(.init(endpoints: [.init(host: "127.0.0.1")], tls: try .init(ca: ca)))
}
"""
USES_SERVICE_LIFECYCLE = """
import HeadroomClient

func run(_ headroom: HeadroomClient) async throws {
    try await headroom.run()
}
"""


def program_calling(call):
    """A program with this call, whose arguments are optionals."""
    return f"""
import HeadroomClient

func run(_ headroom: HeadroomClient, _ user: UserID, _ key: MessageKey?, _ period: BillingPeriod?, _ state: String) async throws {{
    _ = try await {call}
}}
"""


class Versions(unittest.TestCase):
    """The pages name a version to depend on once one is published: once a section of the changelog has a date."""

    PAGES = ("docs/start-swift.md", "Sources/HeadroomClient/Documentation.docc/GettingStarted.md")

    def read(self, path):
        return (ROOT / path).read_text(encoding="utf-8")

    def test_pages_name_the_released_version_or_a_clone(self):
        released = re.findall(r"(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-", self.read("CHANGELOG.md"))
        current = re.search(r'current = "(.*)"', self.read("Sources/Engine/Schema/Version.swift"))[1]
        self.assertIn(current, [*released[:1], *([] if released else ["0.2.0"])], "the newest in the changelog")
        for page in self.PAGES:
            with self.subTest(page=page):
                (named,) = re.findall(r"\.package\(([^)]*headroom[^)]*?), traits:", self.read(page))
                self.assertEqual(named.split(": ", 1)[0] == "path", not released, named)
                self.assertEqual(re.findall(r'from: "(.*?)"', named), released[:1])
        for page in ("README.md", "CHANGELOG.md", "docs/install.md", "docs/faq.md", "docs/fit.md", *self.PAGES):
            said = " ".join(self.read(page).split())
            self.assertEqual("o release is published yet" in said, not released, page)


@nightly("`ClientSources` compiles the library with all traits")
class ClientPackage(Case):
    FLAGS = None

    def test_only_what_its_traits_need_is_fetched(self):
        cache = processes.directory()
        for traits in TRAIT_COMBINATIONS:
            with self.subTest(traits=traits):
                expected = ALWAYS_FETCHED.union(*(FETCHED_FOR_TRAIT[trait] for trait in traits))
                self.assertEqual(Dependent(traits, cache=cache).packages(), expected)
                # docs/client-library.md states the same number of packages.
                page = (ROOT / "docs/client-library.md").read_text(encoding="utf-8")
                quoted_traits = ", ".join(f'"{trait}"' for trait in traits)
                row = re.search(rf"^\| `traits: \[{quoted_traits}\]` \| (\d+) \|", page, re.MULTILINE)
                self.assertIsNotNone(row, "the page has no row for these traits")
                self.assertEqual(int(row.group(1)), len(expected))


class ClientSources(Case):
    FLAGS = None

    def library(self, *traits):
        return CompiledLibrary(traits, built_directory(settings.binary))

    def test_the_library_compiles_with_every_combination_of_traits(self):
        for traits in TRAIT_COMBINATIONS if IS_LONG else TRAIT_COMBINATIONS[-1:]:
            with self.subTest(traits=traits):
                library = self.library(*traits)
                self.assertEqual(library.errors_in(USES_NO_TRAIT), [])
                for trait, program in (("TLS", USES_TLS), ("ServiceLifecycle", USES_SERVICE_LIFECYCLE)):
                    self.assertEqual(library.errors_in(program) == [], trait in traits, f"a program with {trait}")

    @nightly("programs with the arguments of the page compile")
    def test_an_optional_key_period_or_state_does_not_compile(self):
        library = self.library()
        for call, wrong_call in {
            "headroom.consume(user, key: key!)": "headroom.consume(user, key: key)",
            "headroom.grant(user, messages: 1, key: key!)": "headroom.grant(user, messages: 1, key: key)",
            "headroom.usage(of: user, period: period!)": "headroom.usage(of: user, period: period)",
            "headroom.resetUsage(of: user, period: period!)": "headroom.resetUsage(of: user, period: period)",
            "headroom.report(period!)": "headroom.report(period)",
            "headroom.top(in: period!)": "headroom.top(in: period)",
            'headroom.setPlan(.init(user: user, plan: "paid", state: .init(rawValue: state)!))': (
                'headroom.setPlan(.init(user: user, plan: "paid", state: .init(rawValue: state)))'
            ),
        }.items():
            with self.subTest(call=wrong_call):
                self.assertEqual(library.errors_in(program_calling(call)), [])
                errors = library.errors_in(program_calling(wrong_call))
                self.assertTrue(any("must be unwrapped" in error for error in errors), errors)
