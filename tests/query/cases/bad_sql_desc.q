from s in cluster.Syscall("read") group s by s.comm into g orderby g.Count() desc select g.Key
