cluster.Function("größe!é").Count(x => x.größe == 1)
