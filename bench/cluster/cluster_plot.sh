#!/usr/bin/env bash
# Draws bench/results/cluster_scale.json: messages and bytes a second at the root, and latency, by
# machines and fan-out.
# Usage: bench/cluster/cluster_plot.sh >docs/images/cluster-scale.svg
set -euo pipefail
jq -rs '
def x($p): 70 + $p * 300;                                  # left edge of a panel
def px($p; $m): x($p) + 210 * (($m | log10) - 1) / 4;      # 10 to 100,000 machines
def py($lo; $hi; $v): 250 - 200 * (($v | log10) - $lo) / ($hi - $lo);
def r: . * 10 | round / 10;
def colour($f): {"0": "#c0392b", "4": "#2471a3", "16": "#1e8449", "64": "#7d3c98"}["\($f)"];
def axis($p; $title; $lo; $hi):
	"<text x=\"\(x($p))\" y=\"30\" font-weight=\"bold\">\($title)</text>",
	(range(1; 6) |
	"<text x=\"\(px($p; pow(10; .)) | r)\" y=\"266\" text-anchor=\"middle\">10<tspan dy=\"-4\" font-size=\"8\">\(.)</tspan></text>"),
	(range($lo; $hi + 1) | py($lo; $hi; pow(10; .)) as $y |
		"<line x1=\"\(x($p))\" y1=\"\($y | r)\" x2=\"\(x($p) + 210)\" y2=\"\($y | r)\" stroke=\"#ddd\"/>",
		"<text x=\"\(x($p) - 6)\" y=\"\($y + 4 | r)\" text-anchor=\"end\">10<tspan dy=\"-4\" font-size=\"8\">\(.)</tspan></text>");
def panel($rows; $p; $title; $name; $lo; $hi):
	axis($p; $title; $lo; $hi),
	($rows | map(select(.kind == "simulated")) | group_by(.fanout)[] |
		"<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"\(colour(.[0].fanout))\" points=\"\([.[] | "\(px($p; .machines) | r),\(py($lo; $hi; .[$name]) | r)"] | join(" "))\"/>"),
	($rows[] | select(.kind == "measured" and has($name)) |
		"<circle cx=\"\(px($p; .machines) | r)\" cy=\"\(py($lo; $hi; .[$name]) | r)\" r=\"3.5\" fill=\"none\" stroke=\"\(colour(.fanout))\"/>");
. as $rows |
"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"940\" height=\"330\" font-family=\"sans-serif\" font-size=\"11\">",
"<rect width=\"940\" height=\"330\" fill=\"white\"/>",
panel($rows; 0; "messages/s at the root"; "messages_per_s"; 1; 6),
panel($rows; 1; "bytes/s at the root"; "bytes_per_s"; 4; 10),
panel($rows; 2; "latency, ms"; "latency_ms"; 1; 6),
([0, 4, 16, 64] | to_entries[] |
	"<line x1=\"\(70 + .key * 130)\" y1=\"300\" x2=\"\(95 + .key * 130)\" y2=\"300\" stroke-width=\"2\" stroke=\"\(colour(.value))\"/>",
	"<text x=\"\(100 + .key * 130)\" y=\"304\">\(if .value == 0 then "no tree" else "fan-out \(.value)" end)</text>"),
"<text x=\"70\" y=\"322\" font-size=\"10\">by machines; lines: simulated, 1,000 groups; circles: run (128: 1,000 groups, 1,000: 100)</text>",
"</svg>"' "$(dirname "$0")/../results/cluster_scale.json"
