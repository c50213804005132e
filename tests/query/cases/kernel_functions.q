cluster.Function(kernel, "ExAllocate*").Count(event => (event.time < Now.AddMinutes(5)));
