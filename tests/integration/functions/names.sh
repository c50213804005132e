#!/usr/bin/env bash
# Functions by the names that they have in C++ and Rust sources: one, all of a class, overloads with
# and without their arguments, templates; what is listed, what is not found;
# several names of one address.
. "$(dirname "$0")/../lib.sh"
program=$NAMES_TARGET

# calls WHAT EXPECTED PATTERN [PROGRAM]
calls() {
	"$FAY" trace --json -o "$work/trace" "cluster.Function(\"${4:-names_target}!$3\").Count()" \
		-- "${5:-$program}" 2>"$work/err" || { cat "$work/err" >&2; fail "$1"; }
	equal "$1" "$2" "$(jq -r 'select(.type == "row" and .final).values.Count' "$work/trace")"
}
calls "all overloads of a name" 60 'shop::Cart::add'
calls "one overload" 30 'shop::Cart::add(int)'
calls "overloads by a glob" 40 'shop::Cart::add(?[no]*)'
calls "arguments that have spaces" 20 \
	'shop::Cart::add(std::__cxx11::basic_string<*> const&, int)'
calls "a member that is const" 10 'shop::Cart::size'
calls "a constructor" 20 'shop::Cart::Cart'
calls "a destructor" 20 'shop::Cart::~Cart'
calls "an operator" 10 'shop::Cart::operator<'
calls "an operator with the module's sign" 10 'shop::operator!='
calls "the sign alone" 20 'shop::operator!'
calls "a conversion" 10 'shop::Cart::operator long'
calls "a class" 130 'shop::Cart::*'
calls "all instances of a template" 30 'shop::sum<*>'
calls "one instance of a template" 20 'shop::sum<double>'
calls "what the ABI adds to a name" 30 'shop::tagged'
calls "an unnamed namespace" 10 'shop::(anonymous namespace)::hidden'
calls "a name in any namespace" 60 '*::add'
calls "a function outside namespaces" 20 'plain'
calls "the same with its arguments" 20 'plain(int)'
# as before: a name that a symbol has is that one alone
calls "a symbol's name" 10 'both'
calls "the symbol itself" 30 '_ZN4shop4Cart3addEi'
calls "symbols by a glob" 60 '_ZN4shop4Cart3add*'

"$FAY" list "$program" 'names_target!shop::Cart::add' >"$work/list"
equal "overloads that are listed" 3 "$(wc -l <"$work/list")"
contains "an overload's arguments" "$work/list" '  shop::Cart::add(double)'
"$FAY" trace --json -o "$work/trace" 'from e in cluster.Function("names_target!shop::Cart::add")
	group e by e.function into g select new { g.Key, n = g.Count() }' -- "$program" 2>"$work/err"
equal "each overload by itself" "_ZN4shop4Cart3addEd 10 _ZN4shop4Cart3addEi 30" "$(jq -r \
	'select(.type == "row" and .final).values | "\(.Key) \(.n)"' "$work/trace" | sort |
	grep -v string | xargs)"
exits "a name that is not there" 2 "$FAY" trace \
	'cluster.Function("names_target!shop::Cart::ad").Count()' -- "$program"
exits "a name without its class" 2 "$FAY" trace \
	'cluster.Function("names_target!*rt*add").Count()' -- "$program"
contains "where it is" "$work/err" "\`*::*rt*add\` finds "
exits "a misspelt name" 2 "$FAY" trace \
	'cluster.Function("names_target!shop::Cart::addd").Count()' -- "$program"
contains "the name in the source" "$work/err" "did you mean \`shop::Cart::add\`"
exits "its last part" 2 "$FAY" trace 'cluster.Function("names_target!addd").Count()' -- "$program"
contains "the whole name" "$work/err" "\`shop::Cart::add\`"
exits "no name at all" 2 "$FAY" trace 'cluster.Function("names_target!ad*dd").Count()' -- "$program"
contains "the name as it was given" "$work/err" "no function \`ad*dd\` in names_target"

# --- in order by the names that are shown, which is not the order of the symbols
"$FAY" trace 'from e in cluster.Function("names_target!shop::*") group e by e.function into g
	orderby g.Key select new { g.Key, n = g.Count() }' -- "$program" >"$work/table" 2>"$work/err"
sed '1d; s/  *[0-9][0-9]*\( .*\)*$//' "$work/table" >"$work/shown"
contains "a function in the table" "$work/shown" 'shop::sum'
LC_ALL=C sort -c "$work/shown" || fail "order: $(cat "$work/shown")"

# --- several names of one address: found by each, called as it was asked for, counted once
shown() { # PATTERN: each function's name and calls
	"$FAY" trace --json -o "$work/trace" "from e in cluster.Function(\"$1\")
		group e by e.function into g select new { g.Key, n = g.Count() }" -- \
		wc -l /etc/hostname >/dev/null 2>"$work/err" || { cat "$work/err" >&2; fail "$1"; }
	jq -r 'select(.type == "row" and .final).values | "\(.Key) \(.n)"' "$work/trace" |
		grep -E "^(__)?read " | xargs
}
reads=$(shown 'libc!read')
[ "${reads#read }" -ge 2 ] || fail "wc reads its file: $reads"
equal "an alias" "__$reads" "$(shown 'libc!__read')"
equal "an alias and its function by a glob" "$reads" "$(shown 'libc!*read')"
equal "aliases by a glob that has some of them" "__$reads" "$(shown 'libc!__*')"

command -v rustc >/dev/null || { echo "not run: rustc is not installed"; exit; }
cat >"$work/cart.rs" <<'END'
mod shop {
    pub struct Cart { pub total: u64 }
    impl Cart {
        #[inline(never)]
        pub fn add(&mut self, price: u64) { self.total = std::hint::black_box(self.total + price); }
    }
    #[inline(never)]
    pub fn close(n: u64) -> u64 { std::hint::black_box(n) }
}
fn main() {
    let mut cart = shop::Cart { total: 0 };
    for i in 0..10 { cart.add(i); }
    for i in 0..7 { shop::close(i); }
}
END
rustc -O -o "$work/cart" "$work/cart.rs"
calls "a Rust method" 10 'cart::shop::Cart::add' cart "$work/cart"
calls "a Rust module" 17 'cart::shop::*' cart "$work/cart"
