cluster @ 5
