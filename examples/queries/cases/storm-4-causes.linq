// A storm of system calls, 4: what causes them
// How many such calls does one command of the script cause? A join of the shell's `read` command,
// as it ends, with the calls that were made while it ran. `command` is a function that ends, and
// `function` what is called in it, of any program.
//   seq 2000 | fay trace -f storm-4-causes -- bash -c 'while read line; do :; done'
//   fay trace -f storm-4-causes 'redis-server!processCommand' 'libc!write' -p PID --for 5s
param command = "bash!read_builtin"
param function = "libc!read"
from command in cluster.Return("$command")
join r in cluster.Function("$function") on command.tid equals r.tid within 1s
where r.time < command.time && r.time >= command.time - command.Duration
group r by command.time into g
group g by 1 into all
select new { commands = all.Count(), calls = all.Sum(x => x.Count()),
    least = all.Min(x => x.Count()), most = all.Max(x => x.Count()) }
