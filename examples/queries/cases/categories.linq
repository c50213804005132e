// Categories of behaviour, by system calls
// Fay (SOSP 2011), section 5: what a machine does, second by second, as vectors of system calls,
// divided into five clusters; then what each category is made of.
//   fay trace -f categories --for 60s
cluster.Syscall("*")
    .GroupBy(s => new { second = (s.time - Now) / 1s, s.function })
    .KMeans(5, g => g.Key.second, g => g.Key.function, g => g.Count())
    .GroupBy(x => new { category = x.Cluster, call = x.Dimension })
    .OrderBy(c => c.Key.category).ThenByDescending(c => c.Sum(x => x.Value))
    .Select(c => new { c.Key, seconds = c.Count(), calls = c.Sum(x => x.Value) })
