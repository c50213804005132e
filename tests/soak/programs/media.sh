# Media.

sound() { # $work/a.wav: SECONDS of tones, made by no other program
	perl -e 'my ($s) = @ARGV; my $n = 44100 * $s; print "RIFF", pack("V", 36 + 2 * $n), "WAVEfmt ", pack("VvvVVvv", 16, 1, 1, 44100, 88200, 2, 16), "data", pack("V", 2 * $n);
		print pack("v*", map { (int(9000 * sin($_ / (20 + $_ / 90000)) + 3000 * sin($_ / 7) + $_ * 7919 % 1009)) & 65535 } 0 .. $n - 1)' \
		"$1" >"$work/a.wav"
}
picture() { # $work/a.ppm: SIZE
	perl -e \
		'my ($n) = @ARGV; print "P6\n$n $n\n255\n"; for my $y (0 .. $n - 1) { print pack("C*", map { ($_ * $y / 97 & 255, ($_ ^ $y) & 255, ($_ * 7919 + $y) % 251) } 0 .. $n - 1) }' \
		"$1" >"$work/a.ppm"
}
program flac C flac libflac12
flac_() {
	sound 40
	subject /usr/bin/flac flac libFLAC libc
	oneshot /usr/bin/flac -s -8 -c "$work/a.wav"
}
program lame C lame libmp3lame0
lame_() {
	sound 30
	subject /usr/bin/lame lame libmp3lame libc
	oneshot /usr/bin/lame --quiet -q 2 "$work/a.wav" -
}
program opusenc C opus-tools libopus0
opusenc_() {
	sound 30
	subject /usr/bin/opusenc opusenc libopus libc
	oneshot /usr/bin/opusenc --quiet --serial 1 "$work/a.wav" -
}
program oggenc C vorbis-tools libvorbis0a libvorbisenc2
oggenc_() {
	sound 30
	subject /usr/bin/oggenc oggenc libvorbis libvorbisenc libc
	oneshot /usr/bin/oggenc -Q -s 1 -o - "$work/a.wav"
}
program sox C sox libsox3
sox_() {
	sound 30
	subject /usr/bin/sox sox libsox libc
	oneshot /usr/bin/sox -R -D "$work/a.wav" -t raw - reverb rate 48000 equalizer 1000 2q 3 \
		tempo 1.1
}
program ffmpeg C ffmpeg libavcodec59 libavformat59 libavfilter8
ffmpeg_() {
	picture 320
	subject /usr/bin/ffmpeg ffmpeg libavcodec libavformat libavfilter libc
	oneshot /usr/bin/ffmpeg -nostdin -v error -f lavfi -i testsrc=size=320x240:rate=25 -t 20 \
		-c:v mpeg4 -threads 2 -flags bitexact -fflags bitexact -f avi -
}
program x264 C x264 libx264-164
x264_() {
	perl -e \
		'my $n = 160; for my $f (0 .. 119) { for my $y (0 .. $n * 1.5 - 1) { print pack("C*", map { ($_ * $y / 97 + $f * 3) & 255 } 0 .. $n - 1) } }' \
		>"$work/a.yuv"
	subject /usr/bin/x264 x264 libx264 libc
	oneshot /usr/bin/x264 --quiet --no-progress --threads 1 --input-res 160x160 --fps 25 -o - \
		--muxer raw "$work/a.yuv"
}
program imagemagick C imagemagick-6.q16 libmagickcore-6.q16-6
imagemagick_() {
	picture 300
	subject /usr/bin/convert-im6.q16 libMagickCore-6.Q16 libMagickWand-6.Q16 libc
	oneshot /usr/bin/convert-im6.q16 "$work/a.ppm" -resize 150% -blur 0x2 -rotate 7 -colors 64 \
		ppm:-
}
program optipng C optipng
optipng_() {
	picture 150
	convert-im6.q16 "$work/a.ppm" -strip "$work/in.png"
	made="$work/out.png"
	subject /usr/bin/optipng
	oneshot /usr/bin/optipng -quiet -o5 -clobber -out "$work/out.png" "$work/in.png"
}
program cwebp C webp libwebp7
cwebp_() {
	picture 2500
	subject /usr/bin/cwebp cwebp libwebp libc
	oneshot /usr/bin/cwebp -quiet -m 6 "$work/a.ppm" -o -
}
program ghostscript C ghostscript libgs10
ghostscript_() {
	{ echo '%!'; echo \
		'1 1 60 { /n exch def n 0.01 mul setgray newpath 1 1 200 { /i exch def i n mul 500 mod i 3 mul 700 mod lineto } bind for } bind for' \
		| sed 's/newpath/newpath 0 0 moveto/; s/} bind for } bind for/} for stroke } for/'
		echo '/Helvetica findfont 20 scalefont setfont 50 50 moveto (soak) show showpage'; } \
			>"$work/a.ps"
	subject /usr/bin/gs gs libgs libc
	oneshot /usr/bin/gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r150 -sOutputFile=- \
		"$work/a.ps"
}
program graphviz C graphviz libgvc6
graphviz_() {
	{ echo 'digraph g {'; for i in $(seq 150); do
		echo "n$i -> n$((i * 7919 % 101)); n$i -> n$((i / 2));"; done; echo '}';
		} >"$work/a.dot"
	subject /usr/bin/dot libcgraph libgvc libc
	oneshot /usr/bin/dot -Tplain "$work/a.dot"
}
program tesseract C++ tesseract-ocr libtesseract5 tesseract-ocr-eng imagemagick-6.q16
tesseract_() {
	convert-im6.q16 -size 800x600 xc:white -pointsize 24 -fill black -annotate +20+40 \
		'The quick brown fox\njumps over 1234 lazy dogs\nagain and again' "$work/a.png"
	for i in $(seq 60); do echo "$work/a.png"; done >"$work/pages"
	export OMP_THREAD_LIMIT=1
	subject /usr/bin/tesseract libtesseract libc
	oneshot /usr/bin/tesseract "$work/pages" - --psm 6
}
program pdftotext C++ poppler-utils libpoppler126 ghostscript
pdftotext_() {
	{ echo '%!'; echo '/Courier findfont 8 scalefont setfont'; for p in $(seq 60); do
		for i in $(seq 60); do echo \
		"50 $((i * 11 + 50)) moveto (page $p line $i of words and words) show"; done;
		echo showpage; done; } >"$work/a.ps"
	gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile="$work/a.pdf" "$work/a.ps"
	subject /usr/bin/pdftotext libpoppler libc
	oneshot /usr/bin/pdftotext -layout "$work/a.pdf" -
}
program qpdf C++ qpdf libqpdf29 ghostscript
qpdf_() {
	{ for p in $(seq 400); do echo \
		"/Courier findfont 8 scalefont setfont 50 50 moveto (page $p) show showpage";
		done; } >"$work/a.ps"
	gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile="$work/a.pdf" "$work/a.ps"
	subject /usr/bin/qpdf libqpdf libc
	oneshot /usr/bin/qpdf --qdf --static-id "$work/a.pdf" -
}
program mutool C mupdf-tools ghostscript
mutool_() {
	{ for p in $(seq 60); do echo \
		"/Courier findfont 8 scalefont setfont 50 50 moveto (page $p) show showpage";
		done; } >"$work/a.ps"
	gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile="$work/a.pdf" "$work/a.ps"
	subject /usr/bin/mutool
	oneshot /usr/bin/mutool draw -q -F pnm -r 60 -o - "$work/a.pdf"
}
