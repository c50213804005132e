# SPDX-License-Identifier: MIT
# Images for the tests of pages, in $work: accepted ones and one of each outcome of a refusal, one a
# line: NAME EXIT-CODE OUTCOME POLICY. Behind images.sh.
evil='<b_title=x>&"_<!--'"'"$'\e[31m\xff'
reviewed='count 0 accepted none
nest 0 accepted none
certified 0 accepted trusting
hostile 1 unsafe none
source 1 unsafe none
endless 1 unproved none
forbidden 1 unsafe none
flags 1 malformed none
long 3 exhausted hurried
strict 1 unsupported strict
'"$evil 1 unsafe none"
make_reviewed() {
	link count "$source/examples/images/count.S"
	link hostile "$source/examples/images/hostile.S"
	image nest 'push %rbx' 'xor %eax, %eax' '1: xor %ecx, %ecx' '2: mov (%rdi), %rbx' \
		'and $7, %ebx' 'cmp $3, %ebx' 'ja 3f' 'incq (%rsi,%rbx,8)' 'jmp 4f' '3: incq 8(%rsi)' \
		'4: inc %ecx' 'cmp $5, %ecx' 'jb 2b' 'inc %eax' 'cmp $3, %eax' 'jb 1b' 'call twice' \
		'pop %rbx' 'ret' '.type twice, @function' 'twice: incq (%rsi)' 'ret'
	(cd "$work" && "$fay" verify --certify certified.fay nest.fay) >"$work/out" ||
		bad 'nest.fay has no certificate'
	printf '\tsum += a[i]; /* <b>&amp; */\n' >"$work/column.c"
	image source 'mov 0x100000(%rsi), %rax' 'ret' '.section .fay.strings, "a"' \
		's_file: .asciz "folder/column.c"' '.section .fay.lines, "a"' \
		'.long 0, 1, s_file - ., 9' '.text'
	image endless 'mov (%rdi), %rcx' '1: cmp (%rsi), %rcx' 'jne 1b' 'ret'
	image forbidden 'incq (%rsi)' 'syscall' 'ret'
	image flags 'ret' 'IMAGE flags=1' 'PROBE' 'STRINGS'
	image long '.fill 3000000, 1, 0x90' 'ret'
	cp "$work/count.fay" "$work/strict.fay"
	# Names that try HTML, a terminal and the direction of text: of a probe, a column, a function.
	image named 'incq 1024(%rsi)' 'ret' 'IMAGE states=1 columns=1' 'PROBE pattern=s_evil' \
		'STATE s_evil, 1, 1, 0, 8, 0, 0, 1, 1, 8' 'COLUMN s_evil, 2, 1, 0, 8' 'STRINGS' \
		's_evil: .ascii "<img/title=1>&lt;\"'"'"'<b>]]>\0"' '.text'
	objcopy --redefine-sym probe=$'</text></svg><b></style>\e[31m' "$work/named.fay" \
		"$work/$evil.fay"
	printf 'allow_certificates = yes\n' >"$work/trusting"
	printf 'total_ms = 1\n' >"$work/hurried"
	printf 'max_instructions = 3\nmax_local = 8\nallow_helpers = none\n' >"$work/strict"
}
# each COMMAND: for all of them, with $name, $want, $outcome and the array $options
each() {
	while read -r name want outcome policy; do
		options=()
		[ "$policy" = none ] || options=(--policy "$policy")
		"$1"
	done <<<"$reviewed"
}
