"""The parts of the probe-overhead benchmark: what scripts/bench, bench/compare, bench/report and bench/agree share. docs/benchmarking.md says how it measures."""
