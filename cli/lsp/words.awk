# The tables of docs/faylinq.md that explain words of the language, as rows { "Count", "..." }: of
# each word that a cell in code names, the row as Markdown.
function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
function trimmed(text) { gsub(/^ +| +$/, "", text); return text }
# Links within the page are links no more.
function plain(text, at, label) {
	while (match(text, /\[[^]]*\]\([^)]*\)/)) {
		label = substr(text, RSTART + 1, index(substr(text, RSTART), "]") - 2)
		text = substr(text, 1, RSTART - 1) label substr(text, RSTART + RLENGTH)
	}
	return text
}
/^\| (source \| events|field \| type \| meaning|comprehension \| method \||\| of \| result) \|$/ {
	names = /comprehension/ ? 2 : 1
	of = / of / ? "of " : "" # an aggregate
	inside = 1
	next
}
!/^\|/ { inside = 0 }
inside && !/^\| ---/ {
	count = split(plain($0), cells, / \| */)
	sub(/^\| /, "", cells[1])
	text = ""
	for (i = 1; i <= count; i++) {
		cell = trimmed(cells[i])
		sub(/ *\|$/, "", cell)
		if (cell == "")
			continue
		before = i == 1 ? "" : i <= names ? " or " : i == names + 1 ? "@@@@" of : ": "
		text = text before cell
	}
	for (i = 1; i <= names; i++) {
		rest = cells[i]
		while (match(rest, /`[^`]*`/)) {
			code = substr(rest, RSTART + 1, RLENGTH - 2)
			rest = substr(rest, RSTART + RLENGTH)
			sub(/^cluster/, "", code)
			# each word before a bracket that has a dot, else the first
			if (code ~ /^\./) {
				while (match(code, /\.[A-Z][A-Za-z]*\(/)) {
					row(substr(code, RSTART + 1, RLENGTH - 2))
					code = substr(code, RSTART + RLENGTH)
				}
			} else if (match(code, /^[A-Za-z]+/)) {
				row(substr(code, 1, RLENGTH))
			}
		}
	}
}
function row(word, line) {
	if (word in seen)
		return
	seen[word] = 1
	line = quoted(text)
	gsub(/@@/, "\\n", line)
	print "{ \"" word "\", " line " },"
}
