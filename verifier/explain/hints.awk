# SPDX-License-Identifier: MIT
# The "Fix." of each rule's section of docs/rules.md as one line of C: HINT("MEM-BOUNDS", "...").
/^## / { rule = $2 }
/^\*\*Fix\.\*\* / {
	sub(/^\*\*Fix\.\*\* /, "")
	while (match($0, /\]\([^)]*\)/))
		$0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
	gsub(/\[/, "docs/")
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	printf "HINT(\"%s\", \"%s\")\n", rule, $0
}
