// SPDX-License-Identifier: MIT
// otlp.js MODULES SPANS METRICS: lines of OTLP as JSON, through the messages that OpenTelemetry's
// own code has of opentelemetry-proto: encoded as protobuf and decoded again, nothing is lost.
const fs = require("fs");
const assert = require("assert");

const [modules, spans, metrics] = process.argv.slice(2);
const package_ = modules + "/@opentelemetry/otlp-transformer";
const { proto } = require(package_ + "/build/src/generated/root.js").opentelemetry;
const { ExportTraceServiceRequest } = proto.collector.trace.v1;
const { ExportMetricsServiceRequest } = proto.collector.metrics.v1;

// Identifiers are hexadecimal in OTLP's JSON, not base64 as in protobuf's.
function withIdentifiers(value, key, change) {
	if (Array.isArray(value)) return value.map((one) => withIdentifiers(one, "", change));
	if (value && typeof value === "object")
		return Object.fromEntries(
			Object.entries(value).map(([k, v]) => [k, withIdentifiers(v, k, change)]));
	return /^(traceId|spanId|parentSpanId)$/.test(key) ? change(value) : value;
}
const recode = (from, to) => (text) => Buffer.from(text, from).toString(to);

for (const [file, type] of [[spans, ExportTraceServiceRequest],
	[metrics, ExportMetricsServiceRequest]]) {
	const lines = fs.readFileSync(file, "utf8").trim().split("\n");
	for (const line of lines) {
		const told = JSON.parse(line);
		const message = type.fromObject(withIdentifiers(told, "", recode("hex", "base64")));
		assert.equal(type.verify(message), null);
		const decoded = type.decode(type.encode(message).finish());
		const back = type.toObject(decoded, { longs: String, enums: Number, bytes: String });
		assert.deepStrictEqual(withIdentifiers(back, "", recode("base64", "hex")), told);
	}
	console.log("ok: OpenTelemetry, " + file + ": " + lines.length + " requests");
}
