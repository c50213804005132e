/* a */ cluster . /* b
 */ Function("a!b") // c
 .Count() /**/ ;
