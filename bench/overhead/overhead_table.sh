#!/usr/bin/env bash
# The table of docs/performance.md from what bench/overhead/overhead.sh wrote: overhead_table.sh
# [FILE.json]
set -euo pipefail
awk '
function get(name,    v) {
	if (!match($0, "\"" name "\":\"?[^,\"}]*"))
		return ""
	v = substr($0, RSTART, RLENGTH)
	sub(/.*:"?/, "", v)
	return v
}
function percent(x) { return sprintf("%+.1f%%", (x - 1) * 100) }
{
	k = get("kernel"); b = get("build"); builds[b]
	if (!(k in seen)) { seen[k]; order[++n] = k }
	cycles[k, b] = get("cycles"); plain[k, b] = get("to_plain");
	scalar[k, b] = get("to_scalar"); instructions[k, b] = get("instructions")
	low[k, b] = get("to_plain_q1"); high[k, b] = get("to_plain_q3")
}
function cell(k, b) {
	if (!((k, b) in cycles)) return "-"
	return percent(plain[k, b]) " [" percent(low[k, b]) ", " percent(high[k, b]) "]" }
function mean(b) { return number[b] ? percent(exp(sum[b] / number[b])) : "-" }
function count(k, b) {
	if (!((k, b) in cycles) || !instructions[k, "plain"]) return "-"
	return percent(instructions[k, b] / instructions[k, "plain"]) }
END {
	published["md5"] = "+7%"; published["lld"] = "+60%"; published["hotlist"] = "+94%";
	published["adpcm_encode"] = "+49%"; published["adpcm_decode"] = "+12%"
	print "| kernel | plain, cycles | vectors | guarded | guarded to scalar | instructions | confined | XFI |"
	print "| --- | --- | --- | --- | --- | --- | --- | --- |"
	for (i = 1; i <= n; i++) {
		k = order[i]
		printf "| %s | %s | %s | %s | %s | %s | %s | %s |\n", k, cycles[k, "plain"],
			cell(k, "vectors"), cell(k, "guarded"),
			(k, "guarded") in cycles ? percent(scalar[k, "guarded"]) : "-",
			count(k, "guarded"), cell(k, "confined"),
			(k in published) ? published[k] : ""
		for (b in builds)
			if ((k, b) in cycles) { sum[b] += log(plain[k, b]); number[b]++ }
		if ((k, "guarded") in cycles) { to_scalar += log(scalar[k, "guarded"]); scalars++ }
	}
	printf "| geometric mean | | %s | %s | %s | | %s | |\n", mean("vectors"), mean("guarded"), scalars ? percent(exp(to_scalar / scalars)) : "-", mean("confined")
}' "${1:-bench/results/overhead.json}"
