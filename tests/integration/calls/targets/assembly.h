/* Macros of the assembly files here: a function's begin and end. */
	.macro	begin name
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:
	.endm
	.macro	end name
	.size	\name, . - \name
	.endm
