from t in cluster.Timer(10ms) group t by t.comm into g orderby g.Count() descending select new { g.Key, samples = g.Count() }
