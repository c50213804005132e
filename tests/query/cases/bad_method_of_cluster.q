cluster.Funktion("a!b").Count()
