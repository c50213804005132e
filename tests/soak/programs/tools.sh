# Compression, text tools, version control, editors and others.

program gzip C gzip
gzip_() { subject /usr/bin/gzip; filter "$(lines)" /usr/bin/gzip -c; }
program bzip2 C bzip2 libbz2-1.0
bzip2_() { subject /usr/bin/bzip2 bzip2 libbz2 libc; filter "$(lines)" /usr/bin/bzip2 -c; }
program xz C xz-utils liblzma5
xz_() {
	subject /usr/bin/xz xz liblzma libc
	filter "$(lines 60000)" /usr/bin/xz -T2 --block-size=300000 -c
}
program zstd C zstd
zstd_() { subject /usr/bin/zstd; filter "$(lines 60000)" /usr/bin/zstd -T2 -9 -c; }
program brotli C brotli libbrotli1
brotli_() { subject /usr/bin/brotli; filter "$(lines)" /usr/bin/brotli -q 6 -w 20 -c -; }
program lz4 C lz4
lz4_() { subject /usr/bin/lz4; filter "$(lines)" /usr/bin/lz4 -9 -c -; }
program pigz C pigz
pigz_() { subject /usr/bin/pigz; filter "$(lines 60000)" /usr/bin/pigz -nT -p 3 -c -; }
program 7z C++ p7zip-full p7zip
7z_() {
	subject /usr/lib/p7zip/7z 7z libc
	filter "$(lines)" /usr/lib/p7zip/7z a -an -txz -mx=3 -mmt=2 -so -si
}
program lzip C++ lzip
lzip_() { subject /usr/bin/lzip; filter "$(lines)" /usr/bin/lzip -c; }
program lzop C lzop
lzop_() {
	lzop -9 -c "$(lines)" >"$work/in"
	subject /usr/bin/lzop lzop liblzo2 libc
	filter "$work/in" /usr/bin/lzop -d -c
}
program zopfli C zopfli
zopfli_() {
	lines 15000 >/dev/null
	subject /usr/bin/zopfli
	oneshot /usr/bin/zopfli --i5 -c "$work/lines"
}

program sed C sed
sed_() {
	for i in $(seq 500); do printf \
		'a\nline %d seven\n.\ns/e/E/g\n1,$s/\\(lin.\\) \\([0-9]*\\)/\\2 \\1/\n$p\n1,$d\n' \
		"$i"; done >"$work/in"
	subject /usr/bin/ed
	filter "$work/in" /usr/bin/ed -s
}
program grep C grep
grep_() { subject /usr/bin/grep; filter "$(lines)" /usr/bin/grep -nE '(1|word3).*9|^([0-9])\2'; }
program sort C coreutils
sort_() { subject /usr/bin/sort; filter "$(lines 3000)" /usr/bin/sort -k2,2 -k1n; }
program tar C tar
tar_() {
	mkdir "$work/d"
	for i in $(seq 3000); do seq $((i % 70)) >"$work/d/f$i"; done
	subject /usr/bin/tar
	oneshot /usr/bin/tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 -cf - d d d d
}
program find C findutils
find_() {
	for i in $(seq 60); do mkdir -p "$work/d/e$i"; touch "$work/d/e$i/"f{1..60}; done
	subject /usr/bin/find
	oneshot /usr/bin/find $(for _ in $(seq 10); do echo "$work/d";
		done) -name '*7' -type f -path '*e*' -newermt 2001-01-01 -printf '%f %s\n'
}
program ripgrep Rust ripgrep
ripgrep_() {
	for i in $(seq 200); do seq 3000 | sed "s/7/seven$i/" >"$work/f$i"; done
	subject /usr/bin/rg
	oneshot /usr/bin/rg -j2 --sort path -n 'seven(1|2)+[0-9]*3$' "$work" -g 'f*'
}
program fd Rust fd-find
fd_() {
	for i in $(seq 80); do mkdir -p "$work/d/e$i"; touch "$work/d/e$i/"f{1..60}; done
	subject /usr/bin/fdfind
	oneshot /usr/bin/fdfind -j1 --color never -t f '[1-6]*7$' $(for _ in $(seq 10); do
		echo "$work/d"; done)
}
program bat Rust bat
bat_() {
	for i in $(seq 1200); do echo "int f$i(char *p) { return p[$i] + \"x\\n\"[1]; } /* $i */";
		done >"$work/a.c"
	subject /usr/bin/batcat
	oneshot /usr/bin/batcat --color always --style numbers --paging never "$work/a.c"
}
program hugo Go hugo
hugo_() {
	mkdir -p "$work/site/content" "$work/site/layouts/_default"
	echo 'baseURL = "http://x/"' >"$work/site/config.toml"
	echo \
		'{{ .Title }} {{ .Content }} {{ range first 5 .Site.RegularPages }}{{ .Title }}{{ end }}' \
		| tee "$work/site/layouts/_default/single.html" \
		>"$work/site/layouts/_default/list.html"
	for i in $(seq 4000); do printf -- '---\ntitle: T%d\n---\n# H\n\nText *%d*\n' "$i" "$i" \
		>"$work/site/content/p$i.md"; done
	made="$work/out/p7/index.html $work/out/p299/index.html"
	subject /usr/bin/hugo hugo libc
	oneshot /usr/bin/hugo --quiet -s "$work/site" -d "$work/out"
}
program xsltproc C xsltproc libxslt1.1 libxml2
xsltproc_() {
	{ echo '<l>'; for i in $(seq 4000); do echo "<e n='$((i * 7919 % 1009))'>w$i</e>"; done;
		echo '</l>'; } >"$work/a.xml"
	echo \
		'<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/><xsl:template match="/l"><xsl:for-each select="e[@n mod 3 = 1]"><xsl:sort select="@n" data-type="number"/><xsl:value-of select="concat(@n, translate(., &quot;w&quot;, &quot;v&quot;), count(preceding-sibling::e[@n = 5]))"/></xsl:for-each></xsl:template></xsl:stylesheet>' \
		>"$work/a.xsl"
	subject /usr/bin/xsltproc xsltproc libxslt libxml2 libc
	oneshot /usr/bin/xsltproc "$work/a.xsl" "$work/a.xml"
}
program xmlstarlet C xmlstarlet libxml2
xmlstarlet_() {
	{ echo '<l>'; for i in $(seq 900000); do echo "<e n='$((i * 7919 % 1009))'>w$i</e>"; done;
		echo '</l>'; } >"$work/a.xml"
	subject /usr/bin/xmlstarlet xmlstarlet libxml2 libc
	oneshot /usr/bin/xmlstarlet sel -t -m '//e[@n mod 7 = 1]' -v 'concat(@n, .)' -n \
		"$work/a.xml"
}
program hg Python mercurial
hg_() {
	(cd "$work" && mkdir r && cd r && hg init && for i in $(seq 60); do seq "$i" >"f$i";
		done && hg add -q && for i in 1 2 3 4 5 6; do echo "$i" >>f7;
		hg commit -q -u soak -d "$i 0" -m "c$i"; done) >"$work/hg.out" 2>&1
	subject /usr/bin/python3
	oneshot /usr/bin/python3 /usr/bin/hg -R "$work/r" log -p --stat
}
program svnadmin C subversion libsvn1
svnadmin_() {
	(svnadmin create "$work/r" && mkdir "$work/in" && for i in $(seq 300); do
		seq "$i" >"$work/in/f$i"; done && svn import -q -m x "$work/in" "file://$work/r") \
		>"$work/svn.out" 2>&1
	subject /usr/bin/svnadmin svnadmin libsvn_fs_fs-1 libsvn_repos-1 libsvn_subr-1 libc
	subject /usr/bin/svnadmin svnadmin libsvn_repos-1 libsvn_subr-1 libc
	oneshot /usr/bin/svnadmin dump -q "$work/r"
}
program fossil C fossil
fossil_() {
	export USER=soak
	(cd "$work" && fossil init r.fossil && mkdir co && cd co && fossil open ../r.fossil &&
		for i in $(seq 50); do openssl enc -aes-128-ctr -nosalt -K "$i" -iv 00 -in \
		"$(lines 1000)" -out "f$i" 2>/dev/null; done && fossil add . &&
		fossil commit -m x --no-warnings) >"$work/fossil.out" 2>&1
	subject /usr/bin/fossil
	oneshot /usr/bin/fossil tarball -R "$work/r.fossil" tip -
}
program vim C vim
vim_() {
	lines 1000 >/dev/null
	cat >"$work/a.vim" <<-'END'
		while 1
		  %s/\v(\d+) (word\d*)/\2 \1/
		  sort n
		  g/7$/normal dwu
		  let s = 0
		  for i in range(1, line("$")) | let s += len(getline(i)) * i % 97 | endfor
		  try | throw "x" | catch | let s += 1 | endtry
		  call append(0, s . sha256(join(getline(1, "$"), ",")))
		  1print
		  undo 0
		  if filereadable($stop) | cquit 3 | endif
		endwhile
	END
	subject "$(readlink -f /usr/bin/vim)"
	loop "$exe" -u NONE -i NONE -n -es -S "$work/a.vim" "$work/lines"
}
program emacs Lisp emacs-nox
emacs_() {
	echo '(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (let (again) (while (not again) (with-temp-buffer (dotimes (i 2000) (insert (format "%d word\n" (% (* i 7919) 1009)))) (goto-char (point-min)) (while (re-search-forward "\\([0-9]+\\) w" nil t) (replace-match "\\1-v")) (sort-lines nil (point-min) (point-max)) (garbage-collect)
		(princ (format "%s %d %s\n" (md5 (current-buffer)) (fib 15) (condition-case e (error "x") (error (cadr e)))))) (setq again (file-exists-p (getenv "stop")))) (kill-emacs 3))' \
		>"$work/a.el"
	subject "$(readlink -f /usr/bin/emacs)"
	loop "$exe" -Q --batch -l "$work/a.el"
}
program ed C ed
ed_() {
	{ for i in $(seq 500); do printf \
		'a\nline %d seven\n.\ng/seven/s/e/E/g\n1,$s/\\(lin.\\) \\([0-9]*\\)/\\2 \\1/\n$p\n1,$d\n' \
		"$i"; done; } >"$work/in"
	subject /usr/bin/ed
	filter "$work/in" /usr/bin/ed -s
}
program gnuplot C++ gnuplot-nox
gnuplot_() {
	echo \
		'set terminal svg; set samples 5000; set isosamples 60; set hidden3d; splot sin(x) * cos(y), x * y / 20; plot for [i=1:40] sin(i * x) / i, besj0(x)' \
		>"$work/a.gp"; subject /usr/bin/gnuplot-nox
	subject "$(readlink -f /usr/bin/gnuplot)"
	oneshot "$exe" "$work/a.gp"
}
program glpsol C glpk-utils libglpk40
glpsol_() {
	{ echo \
		'set I := 1..30; set J := 1..30; param c{i in I, j in J} := (i * 7919 + j * 104729 + i * j * 31) mod 101; var x{I, J} binary; minimize z: sum{i in I, j in J} c[i, j] * x[i, j]; s.t. a{i in I}: sum{j in J} x[i, j] = 1; s.t. b{j in J}: sum{i in I} x[i, j] = 1; s.t. d: sum{i in I, j in J} (c[j, i] mod 13) * x[i, j] >= 250; solve; printf "%d\n", z; end;'; } \
		>"$work/a.mod"
	subject /usr/bin/glpsol glpsol libglpk libc
	made="$work/glp.out" hide="^(Time|Memory) used|secs"
	oneshot /usr/bin/glpsol -m "$work/a.mod" -y "$work/glp.out" --log "$work/glp.log"
}
program gp C pari-gp
gp_() {
	echo \
		'for(i=1,2400,print(factor(2^(60+i%60)+1)[,1]~," ",nextprime(10^(i%60+1))," ",polroots(x^5+i*x+1)[1],"  ",ellap(ellinit([0,0,1,-1,i]),10007)))' \
		>"$work/a.gp"; subject /usr/bin/gp
	oneshot "$exe" -q -f -D colors= "$work/a.gp"
}
program units C units
units_() {
	for i in $(seq 3000); do echo "$i mile/hour"; echo "m/s"; done >"$work/in"
	subject /usr/bin/units
	filter "$work/in" /usr/bin/units -q -1
}
program openssl C openssl libssl3
openssl_() {
	lines 200000 >/dev/null
	subject /usr/bin/openssl openssl libcrypto libc
	filter "$work/lines" /usr/bin/openssl enc -aes-256-cbc -nosalt -K \
		00112233445566778899aabbccddeeff -iv 00 -a
}
program gpg C gnupg gpg
gpg_() {
	lines 100000 >/dev/null
	mkdir -m 700 "$work/gnupg"
	subject /usr/bin/gpg gpg libgcrypt libc
	oneshot /usr/bin/gpg --homedir "$work/gnupg" --batch --no-options --print-md SHA512 $(for \
		_ in $(seq 60); do echo "$work/lines"; done)
}
program qemu-img C qemu-utils
qemu-img_() {
	seq 900000 >"$work/raw"
	truncate -s 8M "$work/raw"
	made="$work/img"
	subject /usr/bin/qemu-img
	oneshot /usr/bin/qemu-img convert -c -f raw -O qcow2 "$work/raw" "$work/img"
}
program qemu-user C qemu-user
qemu-user_() {
	seq 60000 >"$work/in"
	subject /usr/bin/qemu-x86_64 qemu-x86_64 libc
	oneshot /usr/bin/qemu-x86_64 /usr/bin/mawk \
		'{ s += $1 % 7; t = t substr($1, 1, 1); if (NR % 100 == 0) t = "" } END { print s, length(t) }' \
		"$work/in"
}
program rsync C rsync
rsync_() {
	mkdir "$work/d" "$work/e"
	for i in $(seq 400); do seq $((i * 20)) >"$work/d/f$i";
		seq $((i * 20 + 1)) >"$work/e/f$i"; done
	subject /usr/bin/rsync
	oneshot /usr/bin/rsync -a -c -n -i --no-times "$work/d/" "$work/e/"
}
program curl C curl libcurl4 lighttpd
curl_() {
	port
	web_files
	printf 'server.document-root = "%s/www"\nserver.port = %s\nserver.bind = "127.0.0.1"\n' \
		"$work" "$port" >"$work/conf"
	/usr/sbin/lighttpd -D -f "$work/conf" & own "$!"
	await lighttpd connects
	subject /usr/bin/curl curl libcurl libc
	oneshot /usr/bin/curl -s $(for _ in $(seq 300); do echo "http://127.0.0.1:$port/file"; done)
}
program aria2 C++ aria2 libaria2-0 lighttpd
aria2_() {
	port
	web_files
	seq 3000000 >"$work/www/file"
	printf 'server.document-root = "%s/www"\nserver.port = %s\nserver.bind = "127.0.0.1"\n' \
		"$work" "$port" >"$work/conf"
	/usr/sbin/lighttpd -D -f "$work/conf" & own "$!"
	await lighttpd connects
	made="$work/got.file"
	subject /usr/bin/aria2c libaria2 libc
	oneshot /usr/bin/aria2c -q --no-conf --max-overall-download-limit=10M -d "$work" -o \
		got.file -x 4 -k 1M "http://127.0.0.1:$port/file"
}
program groff C++ groff-base
groff_() {
	{ for i in $(seq 3000); do echo ".SH H$i";
		echo \
		"Some text of paragraph $i \\fBbold\\fP and more words to fill the line with.";
		done; } >"$work/in"
	subject /usr/bin/troff
	oneshot /usr/bin/troff -Tutf8 -man "$work/in"
}
