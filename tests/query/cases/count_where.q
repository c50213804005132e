cluster.Function("libc!*").Count(event => (event.time < Now.AddMinutes(5)));
