from s in cluster.Syscall("read") group s by s.comm into g having g.Count() > 5 select g.Key
