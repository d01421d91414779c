"""While instances are replaced one by one, two releases share a database: this schema must serve the last release's binary too."""

from support.case import Case, needs_one_machine
from support.schema_surface import described, newest_release, open_to_others

ADVICE = (
    "release {}, and applications of its time, need it: add what is new, and drop what is old in a later release"
    " (docs/contributors/testing.md)"
)


@needs_one_machine("what a release uses of the schema is recorded on one machine")
class AdjacentReleases(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.release, cls.recorded = newest_release()

    def test_statements_of_the_last_release_have_the_same_parameters_and_at_least_the_same_columns(self):
        texts = {name: recorded["text"] for name, recorded in self.recorded["statements"].items()}
        self.assertGreater(len(texts), 50)
        present = described(self.database_url, texts)
        for name, recorded in self.recorded["statements"].items():
            with self.subTest(name):
                advice = f"{name}: {ADVICE.format(self.release)}"
                self.assertNotIn("error", present[name], advice)
                self.assertEqual(present[name]["parameters"], recorded["parameters"], advice)
                # A binary ignores columns that it does not know, as long as they come last.
                self.assertEqual(present[name]["columns"][: len(recorded["columns"])], recorded["columns"], advice)

    def test_functions_and_columns_that_others_use_are_still_there(self):
        present = open_to_others(self.cluster, self.database)
        for function, result in self.recorded["functions"].items():
            self.assertEqual(present["functions"].get(function), result, f"{function}: {ADVICE.format(self.release)}")
        for relation, columns in self.recorded["columns"].items():
            missing = set(columns) - set(present["columns"].get(relation, []))
            self.assertFalse(missing, f"{relation}: {ADVICE.format(self.release)}")
