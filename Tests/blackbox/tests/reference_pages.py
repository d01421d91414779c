"""docs/reference: each name that a user sees has one row in one part, and the rows name nothing else."""

import json
import os
import re

from support.case import Case
from support.printed import ROOT
from support.reference import documented, read, tables
from support.service import command

KINDS = ("verb", "scope", "field", "reason", "code", "name of INFO", "family", "setting", "name in SQL", "SQLSTATE", "role", "command",
         "option", "kind", "outcome")  # fmt: skip
"""The first column's heading of each kind of table."""

METHODS = {"get", "post", "put", "delete"}


def openapi():
    return json.loads(read("docs/openapi.json"))


class ReferencePages(Case):
    def test_no_name_is_documented_twice(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.assertGreater(len(documented(kind)), 2)
                self.assertEqual(len({path for path, _ in tables(kind)}), 1, "one part has all of them")

    def test_each_part_says_first_what_it_is_and_the_index_lists_it_once(self):
        parts = sorted(name for name in os.listdir(f"{ROOT}/docs/reference") if name != "README.md")
        index = read("docs/reference/README.md")
        self.assertEqual(sorted(re.findall(r"(?m)^\| \[[^\]]*\]\(([a-z-]+\.md)\) \|", index)), parts)
        for name in parts:
            self.assertRegex(read(f"docs/reference/{name}"), r"\A# [^\n]+\n\n[A-Z`\[][^\n]+\n", name)

    def test_settings_and_verbs_are_those_of_the_program(self):
        flags = re.findall(r"(?m)^  --([a-z-]+) <value>", command("serve", "--help").stdout)
        self.assertEqual(list(documented("setting")), flags)
        with self.service.connect() as connection:
            verbs = [line[1:].split()[0] for line in connection.send_list_command("HELP")]
        self.assertEqual([syntax.split()[0] for syntax in documented("verb")], verbs)

    def test_each_operation_of_the_api_has_a_row(self):
        operations = {f"{method.upper()} {path}" for path, item in openapi()["paths"].items() for method in item if method in METHODS}
        self.assertGreater(len(operations), 15)
        self.assertLessEqual(operations, set(documented("method and path")))

    def test_members_of_answers_in_json_are_fields(self):
        schemas = openapi()["components"]["schemas"]
        members = {name for schema in ("Usage", "Answer") for name in schemas[schema]["properties"]}
        # JSON's own: http.md describes them.
        self.assertEqual(members - {"allowed", "unlimited"}, set(documented("field")))

    def test_names_in_sql_exist_with_their_parameters(self):
        existing = self.psql.run("""
            select case pronamespace when 'public'::regnamespace then '' else 'headroom.' end || proname
                || '(' || coalesce(array_to_string(proargnames[1:pronargs], ', '), '') || ')'
            from pg_proc where pronamespace in ('public'::regnamespace, 'headroom'::regnamespace)
            union all
            select case relnamespace when 'public'::regnamespace then '' else 'headroom.' end || relname
            from pg_class where relnamespace in ('public'::regnamespace, 'headroom'::regnamespace) and relkind in ('r', 'v', 'p')
        """)
        names = {row[0] for row in existing}
        for name in documented("name in SQL"):
            function, parenthesis, parameters = name.partition("(")
            listed = ", ".join(parameter.split()[0] for parameter in parameters.rstrip(")").split(", ") if parameter)
            self.assertTrue((f"{function}({listed})" if parenthesis else name) in names, name)
        public = {name.partition("(")[0] for name in names if not name.startswith("headroom.")}
        owned = self.psql.run("""
            select proname from pg_proc where pronamespace = 'public'::regnamespace and proowner = 'headroom_owner'::regrole
            union select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')
        """)
        self.assertLessEqual(public & {row[0] for row in owned}, {name.partition("(")[0] for name in documented("name in SQL")})
