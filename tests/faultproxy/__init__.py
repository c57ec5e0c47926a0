"""A loopback proxy that spoils chosen answers of a real service.

In a test: `with FaultProxy(url) as proxy: proxy.add(Rule(do="drop", path="/states/provision"))`.
Beside other processes: `python -m tests.faultproxy --target URL`, then rules over HTTP.
"""

from tests.faultproxy.proxy import CONTROL, FaultProxy, Seen
from tests.faultproxy.rules import Rule, Rules

__all__ = ["CONTROL", "FaultProxy", "Rule", "Rules", "Seen"]
