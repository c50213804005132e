# The page as C strings: what comes before the query, before the stacks, and behind them.
function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
BEGIN { print "static const char page_query[] =" }
/@QUERY@/ || /@STACKS@/ {
	at = match($0, /@[A-Z]+@/)
	print quoted(substr($0, 1, at - 1)) ";"
	print "static const char page_" (/@QUERY@/ ? "stacks" : "end") "[] ="
	print quoted(substr($0, at + RLENGTH)) "\"\\n\""
	next
}
{ print quoted($0) "\"\\n\"" }
END { print ";" }
