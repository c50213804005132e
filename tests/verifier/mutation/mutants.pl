#!/usr/bin/perl
# SPDX-License-Identifier: MIT
#
# Mutants of the verifier's sources, found by pattern.
#
#	mutants.pl list FILE...            one line each: NAME <tab> LINE <tab> what changes
#	mutants.pl apply NAME FILE         the mutated source on standard output
#
# NAME is FILE:KIND:ORDINAL, ordinals counted within the file and kind. Kinds:
#
#	guard     the condition of an `if` whose body refuses is made false: the check is gone
#	refuse    a refusal that no `if` guards (a case of a switch, the end of a function) accepts instead
#	accept    the condition of an `if` that answers "true" or "may be read" at once is made true
#	order     < becomes <=, <= becomes <, and so on: a bound is off by one (not in loops' heads, nor where both
#	          sides are the same at the border)
#	include   `return false` of an inclusion or agreement test becomes `return true`
#	havoc     an unknown value becomes the number 0
#
# Left out: checks of allocation and of the clock, which no image decides.
use strict;
use warnings;

my $balanced = qr/(\((?:[^()"']++|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?1))*\))/;
my $refusal = qr/(?:fay_refuse|fay_path_refuse|fay_parser_refuse|reject|reject_obligation|refuse|fail|fay_analysis_fail|fall_short)/;

# Comments become spaces, so that offsets stay.
sub blank_comments {
	my ($text) = @_;
	$text =~ s{(/\*.*?\*/|//[^\n]*)}{ (my $s = $1) =~ s/[^\n]/ /g; $s }gse;
	return $text;
}

# Comparisons that choose between two things that are the same at the border: a < b ? a : b, if (a < b) b = a, a < 0 ? -a : a.
sub same_at_border {
	my ($code, $at, $op) = @_;
	my $e = qr/[\w\[\]>.-]+/;
	my ($before) = substr($code, $at > 80 ? $at - 80 : 0, $at > 80 ? 80 : $at) =~ /($e) $/;
	return 0 unless defined $before;
	my $after = substr($code, $at + length $op, 160);
	my ($x, $y) = (quotemeta $before);
	return 0 unless $after =~ /^ ($e)/;
	$y = quotemeta $1;
	return 1 if $after =~ /^ $y \? (?:$x : $y|$y : $x)[\s;)]/;
	return 1 if $after =~ /^ $y\)\s*(?:$x = $y|$y = $x);/;
	return $after =~ /^ 0 \? -(?:\(\w+\))?$x : (?:\(\w+\))?$x[\s;,)]/;
}

# [kind, offset, length, replacement] in the order of the text.
sub find {
	my ($name, $text) = @_;
	my $code = blank_comments($text);
	my (@found, %guarded);
	while ($code =~ /\bif $balanced\s*\{?\s*(?:return\s+|\w+(?:[.\->]+\w+)*\s*=\s*|\*\w+ = )?($refusal)\s*\(/g) {
		my ($cond, $at, $call) = ($1, $-[1], $-[2]);
		$guarded{$call} = 1;
		my $statement = substr($code, $call, 300);
		next if $cond =~ /\bdeadline\b|^\(!\w+(?:[.\->]+\w+)*(?: \|\| !\w+(?:[.\->]+\w+)*)*\)$|fay_state_join/ || (split /;/, $statement)[0] =~ /out of memory|LIM_TIME/;
		push @found, ["guard", $at, length $cond, "(0 && $cond)"];
	}
	while ($code =~ /\breturn (fay_path_refuse|fay_parser_refuse|fay_refuse|refuse)\s*\(/g) {
		my ($at, $call) = ($-[1], $1);
		next if $guarded{$at};
		my $statement = (split /;/, substr($code, $at, 300))[0];
		next if $statement =~ /out of memory|LIM_TIME/;
		push @found, ["refuse", $at, 0, $call =~ /^fay_(path|parser)_refuse/ ? "1 || " : "1 ? (struct fay_refusal){ 0 } : "];
	}
	while ($code =~ /\bif $balanced\s*return (?:true|SLOT_OK);/g) {
		push @found, ["accept", $-[1], length $1, "(1 || $1)"];
	}
	while ($code =~ / (<=|>=|<|>) (?!\s*=)/g) {
		my ($op, $at) = ($1, $-[1]);
		my $line = substr($code, rindex($code, "\n", $at) + 1);
		$line = (split /\n/, $line)[0];
		next if $line =~ /\b(for|while) \(|^#|deadline|_ns\(|sizeof\(t->|capacity|static const/;
		next if same_at_border($code, $at, $op);
		my %other = ("<" => "<=", "<=" => "<", ">" => ">=", ">=" => ">");
		push @found, ["order", $at, length $op, $other{$op}];
	}
	if ($name =~ /^(state\w*|agree|agree_readings)\.c$/) {
		while ($code =~ /\breturn false;/g) { push @found, ["include", $-[0], length "return false;", "return true;"]; }
	}
	if ($name =~ /transfer/) {
		while ($code =~ /\bfay_scalar_top\(\)/g) { push @found, ["havoc", $-[0], length "fay_scalar_top()", "fay_scalar_const(0)"]; }
		while ($code =~ /\bfay_value_uninit\(\)/g) { push @found, ["havoc", $-[0], length "fay_value_uninit()", "fay_value_scalar(fay_scalar_const(0))"]; }
	}
	return sort { $a->[1] <=> $b->[1] } @found;
}

sub read_whole { local (@ARGV, $/) = ($_[0]); return scalar <>; }

my $command = shift // "";
if ($command eq "list") {
	for my $file (@ARGV) {
		my $text = read_whole($file);
		my ($base) = $file =~ m{([^/]+)$};
		my %count;
		for my $m (find($base, $text)) {
			my $line = 1 + (substr($text, 0, $m->[1]) =~ tr/\n//);
			my $was = (split /\n/, substr($text, rindex($text, "\n", $m->[1]) + 1))[0];
			$was =~ s/^\s+|\t/ /g;
			print "$base:$m->[0]:", $count{$m->[0]}++, "\t$line\t$was\n";
		}
	}
} elsif ($command eq "apply" && @ARGV == 2) {
	my ($name, $file) = @ARGV;
	my ($base, $kind, $ordinal) = split /:/, $name;
	my $text = read_whole($file);
	for my $m (find($base, $text)) {
		next if $m->[0] ne $kind || $ordinal-- != 0;
		substr($text, $m->[1], $m->[2]) = $m->[3];
		print $text;
		exit 0;
	}
	die "no mutant $name\n";
} else {
	die "usage: mutants.pl list FILE... | apply NAME FILE\n";
}
