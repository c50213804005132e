#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""otlp.py FILE: lines of OTLP as JSON, by the messages of opentelemetry-proto 1.3 and the rules of
its encoding: names in lowerCamelCase, none that no message has, words of 64 bits as strings,
identifiers in hexadecimal; then what a receiver relies on. Prints points or spans, as JSON."""
import json
import re
import sys

INT, UINT32, FIXED64, SFIXED64 = "int64", "uint32", "fixed64", "sfixed64"
ATTRIBUTES = {"attributes": ["KeyValue"], "droppedAttributesCount": UINT32}
TIMES = {"startTimeUnixNano": FIXED64, "timeUnixNano": FIXED64}
MESSAGES = {
    "Request": {"resourceMetrics": ["ResourceMetrics"], "resourceSpans": ["ResourceSpans"]},
    "Resource": ATTRIBUTES,
    "Scope": {"name": "string", "version": "string", **ATTRIBUTES},
    "KeyValue": {"key": "string", "value": "AnyValue"},
    "AnyValue": {"stringValue": "string", "boolValue": "bool", "intValue": INT,
                 "doubleValue": "double"},
    "ResourceMetrics": {"resource": "Resource", "scopeMetrics": ["ScopeMetrics"],
                        "schemaUrl": "string"},
    "ScopeMetrics": {"scope": "Scope", "metrics": ["Metric"], "schemaUrl": "string"},
    "Metric": {"name": "string", "description": "string", "unit": "string", "gauge": "Gauge",
               "sum": "Sum", "histogram": "Histogram"},
    "Gauge": {"dataPoints": ["Number"]},
    "Sum": {"dataPoints": ["Number"], "aggregationTemporality": "enum", "isMonotonic": "bool"},
    "Histogram": {"dataPoints": ["HistogramPoint"], "aggregationTemporality": "enum"},
    "Number": {"attributes": ["KeyValue"], **TIMES, "asDouble": "double", "asInt": SFIXED64,
               "flags": UINT32},
    "HistogramPoint": {"attributes": ["KeyValue"], **TIMES, "count": FIXED64, "sum": "double",
                       "bucketCounts": [FIXED64], "explicitBounds": ["double"], "min": "double",
                       "max": "double", "flags": UINT32},
    "ResourceSpans": {"resource": "Resource", "scopeSpans": ["ScopeSpans"], "schemaUrl": "string"},
    "ScopeSpans": {"scope": "Scope", "spans": ["Span"], "schemaUrl": "string"},
    "Span": {"traceId": "id32", "spanId": "id16", "parentSpanId": "id16", "name": "string",
             "kind": "enum", "startTimeUnixNano": FIXED64, "endTimeUnixNano": FIXED64,
             **ATTRIBUTES},
}


def check(value, kind, where):
    if isinstance(kind, list):
        assert isinstance(value, list), where
        for i, item in enumerate(value):
            check(item, kind[0], f"{where}[{i}]")
    elif kind in MESSAGES:
        assert isinstance(value, dict), where
        for name, member in value.items():
            assert name in MESSAGES[kind], f"{where}: {kind} has no {name}"
            check(member, MESSAGES[kind][name], f"{where}.{name}")
    elif kind in (INT, SFIXED64, FIXED64):
        low, high = (0, 2**64) if kind == FIXED64 else (-2**63, 2**63)
        assert re.fullmatch(r"-?\d+", value) and low <= int(value) < high, where
    elif kind in (UINT32, "enum"):
        assert type(value) is int and value > 0, f"{where}: {value}"
    elif kind == "double":
        assert type(value) in (int, float) or value in ("NaN", "Infinity", "-Infinity"), where
    elif kind.startswith("id"):
        assert re.fullmatch("[0-9a-f]{%s}" % kind[2:], value) and int(value, 16), where
    else:
        assert type(value) is {"string": str, "bool": bool}[kind], f"{where}: {value}"


def attributes(of):
    names = [a["key"] for a in of]
    assert len(names) == len(set(names)), names
    return {a["key"]: next(iter(a["value"].values())) for a in of}


def point(metric, one, kind):
    assert int(one["startTimeUnixNano"]) <= int(one["timeUnixNano"])
    if kind != "histogram":
        assert ("asInt" in one) != ("asDouble" in one), one
        return int(one["asInt"]) if "asInt" in one else one["asDouble"]
    bounds, counts = one["explicitBounds"], [int(n) for n in one["bucketCounts"]]
    assert len(counts) == len(bounds) + 1 and sum(counts) == int(one["count"]), one
    assert bounds == sorted(set(bounds)), bounds
    return {"count": int(one["count"]), "bounds": bounds, "counts": counts}


def metrics_of(request):
    for metric in request["scopeMetrics"][0]["metrics"]:
        kinds = [k for k in ("gauge", "sum", "histogram") if k in metric]
        assert len(kinds) == 1, metric
        data = metric[kinds[0]]
        assert kinds[0] == "gauge" or data["aggregationTemporality"] == 2, metric["name"]
        for one in data["dataPoints"]:
            yield {"name": metric["name"], "kind": kinds[0], "unit": metric["unit"],
                   "labels": attributes(one.get("attributes", [])),
                   "value": point(metric, one, kinds[0])}


def spans_of(request):
    for span in request["scopeSpans"][0]["spans"]:
        begin, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert begin <= end and span["kind"] == 1, span
        yield {"name": span["name"], "trace": span["traceId"], "span": span["spanId"],
               "duration": end - begin, "end": end,
               "attributes": attributes(span.get("attributes", []))}


for line in open(sys.argv[1], encoding="utf-8"):
    whole = json.loads(line)
    check(whole, "Request", "")
    assert len(whole) == 1, whole.keys()
    for part in next(iter(whole.values())):
        assert {"service.name", "host.name"} <= attributes(part["resource"]["attributes"]).keys()
        for found in metrics_of(part) if "scopeMetrics" in part else spans_of(part):
            print(json.dumps(found))
