machine("web1").Count()
