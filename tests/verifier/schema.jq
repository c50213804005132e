# A small checker for the part of JSON Schema that the schemas here use: prints what is wrong. Members
# that the schema does not name are wrong, too. With --slurpfile schema FILE.
def kind: if type == "number" and . == floor then "integer" else type end;
def check($s; $at):
	(. as $v | if ($s.type | if type == "array" then . else [.] end | index($v | kind)) == null then "\($at): is \(kind), not \($s.type)" else empty end),
	(. as $v | if $s.enum and ($s.enum | index([$v]) == null) then "\($at): \($v) is not in \($s.enum)" else empty end),
	(if type == "object" then
		(. as $o | ($s.required // [])[] | . as $r | if $o | has($r) then empty else "\($at): lacks \($r)" end),
		(to_entries[] | .key as $k | if $s.properties[$k] then .value | check($s.properties[$k]; "\($at).\($k)") else "\($at): has \($k)" end)
	elif type == "array" then to_entries[] | .key as $i | .value | check($s.items; "\($at)[\($i)]") else empty end);
check($schema[0]; "report")
