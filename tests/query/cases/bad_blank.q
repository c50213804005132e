  // nothing

