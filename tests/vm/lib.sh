# What the kernel tests share: `inside SCRIPT [vm options] [-- ARGUMENT...]` runs a script in the
# machine with fay, fay.ko and the tests' programs.
here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-$here/../../build}
export FAY_VM_CACHE=${FAY_VM_CACHE:-$BUILD/vm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }

kernel=$("$here/../../scripts/vm-kernel") || exit $?
version=$(cat "$kernel/version")
"$here/../../scripts/kernel-module" "$kernel/headers" "$BUILD/kernel" >"$work/built" 2>&1 ||
	{ cat "$work/built" >&2; exit 1; }

# The path of a module of the tests' own, built: module NAME, which is a folder here.
module() {
	cp -r "$here/$1" "$work/"
	make -s -C "$kernel/headers" M="$work/$1" modules >"$work/built" 2>&1 || {
		cat "$work/built" >&2
		return 1
	}
	echo "$work/$1/$1.ko"
}

# The libraries that fay loads when it needs them, which it is not linked with.
delayed() {
	ldd "$BUILD/cli/fay_whole" | awk '/libLLVM|libz3|libcapstone/ {
		print $3 ":lib/" $1 }'
}

inside() {
	local script=$1 options=() file
	shift
	for file in "$BUILD/bin/fay" "$BUILD/bin/fay-verify" $(delayed) \
		"$BUILD/bin/kernel_calls" "$BUILD/bin/kernel_ioctl" \
		"$here/guest/inside.sh:inside.sh" \
		"$BUILD/kernel/fay.ko:lib/modules/$version/extra/fay.ko"; do
		options+=(--with "$file")
	done
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -eq 0 ] || shift
	"$here/../../scripts/vm" "${options[@]}" "$script" "$@"
}
