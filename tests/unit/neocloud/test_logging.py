"""Logs: one id for a request, no secrets, no local variables."""

import io
import json
import logging
import logging.config
from uuid import UUID

import pytest
import structlog
from django.http import HttpResponse
from django.test import RequestFactory

from neocloud.logging import RequestContextMiddleware, configure, hide_secrets, request_id_of


@pytest.fixture
def lines():
    """What was written, as JSON; structlog and logging are put back afterwards."""
    before, root, stream = structlog.get_config(), logging.getLogger(), io.StringIO()
    formatter = configure(as_json=True)["formatters"]["structured"]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter.pop("()")(**formatter))
    level = root.level
    root.addHandler(handler)
    root.setLevel("INFO")
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)
    structlog.configure(**before)


def test_the_settings_are_ones_logging_takes(lines):
    for as_json in (True, False):
        configurator = logging.config.DictConfigurator(configure(as_json=as_json))
        handler = configurator.config["handlers"]["stderr"]
        formatter = configurator.configure_formatter(
            configurator.config["formatters"]["structured"]
        )
        assert handler["formatter"] == "structured"
        record = logging.makeLogRecord({"msg": "hello %s", "args": ("you",), "levelname": "INFO"})
        assert "hello you" in formatter.format(record)
    assert lines() == []


def serve(view=lambda _request: HttpResponse(), path="/orders/", **headers):
    return RequestContextMiddleware(view)(RequestFactory(headers=headers).get(path))


def test_a_request_without_an_id_gets_one_and_is_told():
    assert UUID(serve()["X-Request-ID"]).version == 7


def test_a_well_formed_id_is_kept():
    assert serve(**{"X-Request-ID": "edge-0001.a_b"})["X-Request-ID"] == "edge-0001.a_b"


@pytest.mark.parametrize(
    "wrong", ["short", "x" * 65, "with space in it", "<script>alert", "=1+2+3+4+5"]
)
def test_any_other_id_is_replaced(wrong):
    assert serve(**{"X-Request-ID": wrong})["X-Request-ID"] != wrong


def test_a_request_keeps_its_id():
    request = RequestFactory().get("/")
    assert request_id_of(request) == request_id_of(request)


def test_the_id_is_bound_while_serving_and_gone_afterwards():
    seen = []

    def view(_request):
        seen.append(structlog.contextvars.get_contextvars().get("request_id"))
        return HttpResponse()

    response = serve(view)
    assert seen == [response["X-Request-ID"]]
    assert structlog.contextvars.get_contextvars() == {}


def test_each_request_leaves_one_line_and_health_checks_none(lines):
    serve()
    serve(path="/healthz")
    (line,) = lines()
    assert line["event"] == "request.done"
    assert line["status"] == 200
    assert UUID(line["request_id"])


def test_secrets_are_hidden_and_lines_of_libraries_look_the_same(lines):
    structlog.get_logger("apps.x").info(
        "site.added", password="p1", nested={"Token": "p2"}, count=2
    )
    logging.getLogger("library").warning("calling %s", "https://me:p3@host/")
    ours, theirs = lines()
    assert (ours["event"], ours["count"], ours["level"]) == ("site.added", 2, "info")
    assert not {"p1", "p2"} & set(json.dumps(ours).split('"'))
    assert theirs["level"] == "warning"
    assert "p3" not in theirs["event"]
    assert "host" in theirs["event"]


def test_a_traceback_shows_no_local_variables(lines):
    try:
        hidden = "local-value"
        raise ValueError(len(hidden))
    except ValueError:
        structlog.get_logger("apps.x").exception("thing.failed")
    (line,) = lines()
    assert "ValueError: 11" in line["exception"]
    assert "local-value" not in line["exception"].replace('hidden = "local-value"', "")


def test_the_processor_leaves_the_machinery_of_structlog_alone():
    record = object()
    event = hide_secrets(None, "info", {"event": "x", "_record": record, "api_key": "k"})
    assert event["_record"] is record
    assert event["api_key"] == "[hidden]"
