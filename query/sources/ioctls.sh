#!/bin/sh
# ioctls.sh COMPILER...: commands of ioctl that the kernel's headers have, FAY_IOCTL(NAME) a line.
# Of several names of one number the first is shown, so what is no one driver's comes first. Those
# whose types other headers would define are left out.
set -eu
headers=$(dirname "$0")/ioctl_headers.h
all_errors=-fmax-errors=0
case $("$@" --version) in *clang*) all_errors=-ferror-limit=0 ;; esac
commands() {
	"$@" -E -dM - | sed -n -E -e 's/^#define ([A-Z][A-Z0-9_]*) _IO[RW]*\(.*$/FAY_IOCTL(\1)/p' \
		-e 's/^#define ([A-Z][A-Z0-9_]*) 0x(03|4B|53|54|56|89)[0-9A-Fa-f]{2}$/FAY_IOCTL(\1)/p' |
		LC_ALL=C sort
}
all=$({
	printf '#include <%s>\n' asm/ioctls.h linux/fs.h | commands "$@"
	commands "$@" <"$headers"
} | awk '!seen[$0]++')
{
	cat "$headers"
	echo '#define FAY_IOCTL(name) unsigned long name##_(void) { return name; }'
	printf '# 1 "commands"\n%s\n' "$all"
} | LC_ALL=C "$@" $all_errors -x c -fsyntax-only - 2>&1 |
	sed -n 's/^commands:\([0-9]*\):.* error: .*/\1/p' | {
	wrong=" $(tr '\n' ' ')"
	echo "$all" | awk -v wrong="$wrong" '!index(wrong, " " NR " ")'
}
