// Garbage collections of Java, one by one
//   fay trace -f java-gc --comm java --for 1m
from c in cluster.Usdt("libjvm!hotspot:mem__pool__gc__begin")
select new { c.time, c.pid }
