// Automatic categories of behaviour (Fay, section 5): what a machine does, second by second, as vectors of system calls, divided into five clusters; then what each category is made of.
//   fay trace --for 60s "$(cat examples/queries/categories.linq)"
cluster.Syscall("*")
    .GroupBy(s => new { second = (s.time - Now) / 1s, s.function })
    .KMeans(5, g => g.Key.second, g => g.Key.function, g => g.Count())
    .GroupBy(x => new { category = x.Cluster, call = x.Dimension })
    .OrderBy(c => c.Key.category).ThenByDescending(c => c.Sum(x => x.Value))
    .Select(c => new { c.Key, seconds = c.Count(), calls = c.Sum(x => x.Value) })
