"""try"""
from support.case import NOON, Case
import urllib.request, subprocess
class Try(Case):
    CLOCK = NOON
    def test_try(self):
        print(self.service.http)
