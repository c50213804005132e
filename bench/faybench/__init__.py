"""The parts of the probe-overhead benchmark: what scripts/bench, bench/compare, bench/report, bench/agree and bench/tables share. docs/benchmarking.md says how it measures."""
