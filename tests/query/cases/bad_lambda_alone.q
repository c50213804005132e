x => x
