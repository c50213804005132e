# Inside the machine: checks that count their failures. `finish` exits.
failures=0
# check NAME EXPECTED ACTUAL
check() {
	if [ "$2" = "$3" ]; then
		echo "ok   $1: $3"
	else
		echo "FAIL $1: expected '$2', got '$3'"
		failures=$((failures + 1))
	fi
}
# check_has NAME TEXT WHOLE
check_has() {
	case $3 in
	*"$2"*) echo "ok   $1" ;;
	*) echo "FAIL $1: no '$2' in '$3'"; failures=$((failures + 1)) ;;
	esac
}
finish() {
	if grep -q ' fay_s' /proc/modules; then
		echo "FAIL a session's module is left: $(grep ' fay_s' /proc/modules)"
		failures=$((failures + 1))
	fi
	[ "$failures" -eq 0 ] && echo "all fine"
	exit $((failures != 0))
}
# The value of a column of the last JSON row.
value() {
	sed -n "s/.*\"final\":true.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" | tail -1
}
