# Science, graphics, networks and storage: programs with large libraries of their own.

program povray C++ povray
povray_() {
	cat >"$work/a.pov" <<-'END'
		camera { location <0, 2, -5> look_at <0, 0, 0> }
		light_source { <5, 5, -5> color rgb 1 }
		#declare i = 0;
		#while (i < 40)
		  sphere { <mod(i, 8) - 4, floor(i / 8) - 2, i / 10>, .5
		    texture { pigment { color rgb <i / 40, .5, 1 - i / 40> } finish { reflection .3 } } }
		  #declare i = i + 1;
		#end
		plane { y, -3 pigment { checker color rgb 1 color rgb 0 } }
	END
	subject /usr/bin/povray povray libc
	oneshot /usr/bin/povray -D -GA +I"$work/a.pov" +O- +FB +W160 +H120 +WT1
}

program R R r-base-core
R_() {
	cat >"$work/a.R" <<-'END'
		set.seed(1)
		f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2)
		cat(f(17), "\n")
		x <- rnorm(1e4)
		print(summary(lm(x ~ seq_along(x)))$r.squared)
		for (i in 1:3000) tryCatch(if (i %% 2) stop("x") else i, error = function(e) 0)
		print(sum(sapply(strsplit(rep("a,b,c", 5000), ","), length)))
		print(tryCatch(stop("boom"), error = function(e) conditionMessage(e)))
	END
	subject /usr/lib/R/bin/exec/R R libR libc
	export R_HOME=/usr/lib/R LD_LIBRARY_PATH=/usr/lib/R/lib
	oneshot /usr/lib/R/bin/exec/R --no-echo --no-restore --vanilla --file="$work/a.R"
}

program pypy3 RPython pypy3
pypy3_() {
	cat >"$work/a.py" <<-'END'
		import hashlib, json, re
		def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
		print(fib(28))
		text = json.dumps({str(i): i * i for i in range(100000)})
		print(hashlib.sha256(text.encode()).hexdigest(), len(re.findall(r'\d+', text)))
		raised = 0
		for i in range(1500000):
		    try:
		        if i % 3 == 0: raise ValueError(i)
		    except ValueError: raised += 1
		print(raised)
	END
	subject /usr/bin/pypy3 libpypy3.9-c libc
	oneshot /usr/bin/pypy3 "$work/a.py"
}

program tarantool C tarantool
tarantool_() {
	cat >"$work/a.lua" <<-'END'
		local fiber, json = require('fiber'), require('json')
		local n, raised = 0, 0
		for i = 1, 200 do
		  fiber.create(function() for k = 1, 50 do n = n + 1; fiber.yield() end end)
		end
		while n < 10000 do fiber.sleep(0.001) end
		for i = 1, 600000 do
		  if not pcall(function() if i % 2 == 0 then error('e') end end) then raised = raised + 1 end
		end
		print(n, raised, #json.encode({a = {1, 2, 3}}))
		os.exit(0)
	END
	subject /usr/bin/tarantool tarantool libc
	oneshot /usr/bin/tarantool "$work/a.lua"
}

program restic Go restic
restic_() {
	mkdir -p "$work/files"
	for i in $(seq 40); do seq "$i" 3000 >"$work/files/$i"; done
	export RESTIC_PASSWORD=x RESTIC_CACHE_DIR=$work/cache
	/usr/bin/restic -q init -r "$work/repository"
	/usr/bin/restic -q backup -r "$work/repository" "$work/files"
	subject /usr/bin/restic restic
	oneshot /usr/bin/restic -r "$work/repository" dump latest "$work/files/7"
}

program tshark C tshark
tshark_() {
	python3 - "$work/a.pcap" <<-'END'
		import struct, sys
		with open(sys.argv[1], 'wb') as f:
		    f.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
		    for i in range(400):
		        dns = struct.pack('>HHHHHH', i, 0x100, 1, 0, 0, 0) + b'\4name\3org\0\0\1\0\1'
		        udp = struct.pack('>HHHH', 1000 + i, 53, 8 + len(dns), 0) + dns
		        ip = struct.pack('>BBHHHBBH4s4s', 69, 0, 20 + len(udp), i, 0, 64, 17, 0,
		                         b'\n\0\0\1', b'\n\0\0\2') + udp
		        frame = b'\2' * 12 + b'\x08\0' + ip
		        f.write(struct.pack('<IIII', i, 0, len(frame), len(frame)) + frame)
	END
	subject /usr/bin/tshark libwireshark libc
	oneshot /usr/bin/tshark -n -V -r "$work/a.pcap"
}

program gdal C++ gdal-bin
gdal_() {
	{ echo 'ncols 400'; echo 'nrows 400'; echo 'xllcorner 0'; echo 'yllcorner 0'; echo 'cellsize 1'
		for i in $(seq 400); do seq -s ' ' "$i" $((i + 399)); done; } >"$work/a.asc"
	subject /usr/bin/gdal_contour libgdal libc
	made="$work/a.json"
	oneshot /usr/bin/gdal_contour -f GeoJSON -i 1 "$work/a.asc" "$work/a.json"
}

program rsvg Rust librsvg2-bin
rsvg_() {
	{
		echo '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200">'
		echo '<defs><filter id="b"><feGaussianBlur stdDeviation="3"/></filter></defs>'
		for i in $(seq 900); do
			echo "<circle cx='$i' cy='$((i * 7 % 200))' r='$((i % 30))' fill='red'"
			echo " filter='url(#b)'/><path d='M$i 10 C 20 200, 40 20, 180 190' stroke='blue'/>"
		done
		echo '</svg>'
	} >"$work/a.svg"
	subject /usr/bin/rsvg-convert rsvg-convert libcairo libc
	oneshot /usr/bin/rsvg-convert "$work/a.svg"
}

program vips C libvips-tools
vips_() {
	/usr/bin/vips gaussnoise "$work/a.v" 1500 1500 --seed 7
	subject /usr/bin/vips libvips libc
	made="$work/b.v"
	oneshot /usr/bin/vips gaussblur "$work/a.v" "$work/b.v" 12
}

program cbc C++ coinor-cbc
cbc_() {
	{
		echo 'Maximize'; echo ' obj: '
		for i in $(seq 60); do echo " + $((i * 7 % 13 + 1)) x$i"; done
		echo 'Subject To'
		for k in $(seq 25); do
			echo " c$k: "
			for i in $(seq 60); do echo " + $(((i * k) % 11 + 1)) x$i"; done
			echo " <= $((90 + k * 5))"
		done
		echo 'General'; for i in $(seq 60); do echo " x$i"; done; echo End
	} >"$work/a.lp"
	subject /usr/bin/cbc libCbc libCbcSolver libClp libc
	made="$work/a.txt"
	oneshot /usr/bin/cbc "$work/a.lp" log 0 solve solu "$work/a.txt"
}

program mksquashfs C squashfs-tools
mksquashfs_() {
	mkdir -p "$work/files"
	for i in $(seq 200); do seq "$i" 30000 >"$work/files/$i"; done
	find "$work/files" -exec touch -d @1 {} +
	subject /usr/bin/mksquashfs mksquashfs libc
	made="$work/a.squashfs"
	oneshot /usr/bin/mksquashfs "$work/files" "$work/a.squashfs" -mkfs-time 1 -all-time 1 \
		-all-root -processors 2 -quiet -no-progress
}

program timidity C timidity
timidity_() {
	{
		printf 'MThd\0\0\0\6\0\0\0\1\0\x60MTrk\0\0\x12\x84'
		for i in $(seq 592); do printf '\0\x90\x3c\x7f\x60\x80\x3c\0'; done
		printf '\0\xff\x2f\0'
	} >"$work/a.mid"
	subject /usr/bin/timidity timidity libc
	oneshot /usr/bin/timidity -Ow -o - "$work/a.mid"
}
