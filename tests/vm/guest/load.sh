# Inside the machine: work on files and processes, and how long it takes.
now() { cut -d' ' -f1 /proc/uptime; }
load() {
	local i=0
	mkdir -p /tmp/load
	while [ $i -lt 20 ]; do
		dd if=/dev/zero of=/tmp/load/$i bs=64k count=4 2>/dev/null
		cp /tmp/load/$i /tmp/load/copy && cat /tmp/load/copy | wc -c >/dev/null &&
			ls -l /tmp/load >/dev/null
		i=$((i + 1))
	done
	rm -r /tmp/load
	kernel_calls fork 50 read 1000 access 1000
}
elapsed() { echo "$1 $2" | awk '{printf "%.2f", $2 - $1}'; }
measure() { local from to; from=$(now); load; to=$(now); elapsed "$from" "$to"; }
