from io in cluster.Function("libc!read")
where io.time < Now.AddMinutes(5)
let size = io.Arg(2) // request size in bytes
group io by size/1024 into g
select new { sizeInKilobytes = g.Key, countOfReadIOs = g.Count() };
