"""integrations/litellm against the source of the installed LiteLLM: no call type is new, and the page lets through what counts."""

import ast
import re
import unittest

from support.installed_routes import routes
from support.litellm_proxy import PYTHON
from support.printed import blocks

from .litellm_callback import load_callback

MESSAGES = {
    "completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses", "compact_responses",
    "acompact_responses", "anthropic_messages", "aanthropic_messages", "generate_content", "agenerate_content",
    "generate_content_stream", "agenerate_content_stream", "create_interaction", "acreate_interaction", "send_message", "asend_message",
    "query", "aquery", "run_thread", "arun_thread", "run_thread_stream", "arun_thread_stream", "decisions", "adecisions", "systemone",
    "asystemone",
}  # fmt: skip
"""The call types of the tested version that count because the callback does not name them."""
HOOKS = {"common_processing_pre_call_logic", "base_process_llm_request", "pre_call_hook"}
"""The functions of LiteLLM by which a request reaches the callback."""


class CallTypes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (cls.folder,) = PYTHON.parents[1].glob("lib/python3.*/site-packages/litellm")
        cls.callback = load_callback()

    def literals(self, path, name):
        """The values of an enumeration, of a Literal, or of the Literals of the parameters with this name."""
        found = set()
        for node in ast.walk(ast.parse((self.folder / path).read_text())):
            target = getattr(node, "target", None) or next(iter(getattr(node, "targets", ())), None)
            if name in (getattr(node, "name", None), getattr(target, "id", None), getattr(node, "arg", None)):
                constants = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                found |= {each for each in constants if re.fullmatch(r"\w+", str(each))}
        self.assertTrue(found, f"{path} has no {name}")
        return found

    def known(self):
        found = self.literals("types/utils.py", "CallTypes") | self.literals("types/utils.py", "CallTypesLiteral")
        for name in ("ProxyRouteType", "route_type"):
            found |= self.literals("proxy/common_request_processing.py", name)
        for file in (self.folder / "proxy").rglob("*.py"):
            found |= set(re.findall(r'pre_call_hook\([^()]*call_type="(\w+)"', file.read_text()))
        return found

    def test_no_call_type_of_the_installed_version_is_unclassified(self):
        known = self.known()
        self.assertGreater(len(known), 150)
        uncounted = {name for name in known if {name, name.removeprefix("a")} & self.callback.NO_MESSAGES}
        classes = (uncounted, known & self.callback.ANY_NUMBER, known & MESSAGES)
        self.assertEqual(sorted(known.difference(*classes)), [], "decide whether these are messages")
        self.assertEqual(sum(map(len, classes)), len(known), "none is in two classes")
        for names in (self.callback.ANY_NUMBER, MESSAGES):
            self.assertEqual(sorted(names - known), [], "a name that LiteLLM does not have")
        for name in self.callback.NO_MESSAGES:
            self.assertTrue({name, f"a{name}"} & known, name)

    def test_the_routes_that_the_page_lets_through_reach_the_callback(self):
        (block,) = [each for each in blocks("integrations/litellm/README.md") if each.language == "nginx"]
        open_paths = [re.compile(each) for each in re.findall(r"location ~ (\S+)", block.text)]
        self.assertEqual(len(open_paths), 4)

        def is_open(path):
            return any(each.search(path) for each in open_paths)

        let_through = [route for file in (self.folder / "proxy").rglob("*.py") for route in routes(file, is_wanted=is_open)]
        self.assertGreater(len(let_through), 30)
        past = {route.path for route in let_through if not route.calls & HOOKS}
        self.assertEqual(past, {f"{base}/{name}" for base in ("", "/v1") for name in ("models", "responses/input_tokens")})
        for path in ("/v1/threads/x/runs", "/rag/query", "/queue/chat/completions", "/vllm/v1/chat/completions", "/azure/x", "/realtime"):
            self.assertFalse(is_open(path), path)


def load_tests(loader, tests, pattern):
    """Only where LiteLLM is installed: by script/integrations."""
    return tests if PYTHON.exists() else unittest.TestSuite()
